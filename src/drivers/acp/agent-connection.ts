import type {
  AnyNotification,
  ClientConnection,
  RequestPermissionRequest,
  SessionNotification,
  Stream,
} from "@agentclientprotocol/sdk/unstable";
import { setTimeout as pause } from "node:timers/promises";
import type { AgentExit, OpenRequest, Replay } from "../port.ts";
import type { AgentProcess } from "../process/process.ts";
import type { Dialect } from "./dialect.ts";
import { answerElicitation, answerPermission, type Asking } from "./requests.ts";
import { boundedStream } from "./stream.ts";
import { type PromptSeen, Updates } from "./update/updates.ts";

/** One agent process that speaks ACP: its connection, its updates, and what went wrong with it. */
export interface AgentConnection {
  readonly process: AgentProcess;
  readonly updates: Updates;
  readonly rpc: ClientConnection;
  /** Why we ended the agent ourselves; null if we did not. */
  readonly problem: () => string | null;
  /** The conversation that a load replayed. Resolves when the replay is complete. */
  readonly replay: () => Promise<Replay | null>;
  /** What the updates had shown about the last prompt by the time its answer arrived. */
  readonly seen: () => PromptSeen;
  /** From now on, ignores updates of every session but this one, because an agent may open sub-sessions. */
  readonly listenTo: (sessionId: string) => void;
  /** Answers every open request of the agent as cancelled. */
  readonly cancelRequests: () => void;
  /** Call this after the output has closed. Resolves when the process has ended; kills it after `LATE_MS`. */
  readonly ended: () => Promise<AgentExit>;
}

export async function connect(
  process: AgentProcess,
  dialect: Dialect,
  { onUpdate, onRequest }: Pick<OpenRequest, "onUpdate" | "onRequest">,
): Promise<AgentConnection> {
  const updates = new Updates(onUpdate, dialect.ownTool);
  const replayQuietMs = dialect.load?.replayQuietMs;
  let problem: string | null = null;
  let replay: Replay | null = null;
  let heardAt = performance.now();
  let seen: PromptSeen = { systemError: null, toolCalls: 0, usd: null };
  let listenedTo: string | null = null;
  let cancelling = Promise.withResolvers<void>();

  const stream = boundedStream({
    input: process.stdout,
    output: process.stdin,
    onNotification(message) {
      if (message.method !== "session/update") return takeCall(dialect, updates, message);
      heardAt = performance.now();
      const { sessionId, update } = (message.params ?? {}) as Partial<SessionNotification>;
      if (!update || sessionId !== (listenedTo ?? sessionId)) return;
      if (dialect.isNoise?.(update) !== true) updates.take(update);
    },
    onAnswer(method, left) {
      // A prompt sent during a turn joins that turn, so the turn ends only when no prompt is open any longer.
      if (method === "session/prompt" && left > 0) updates.endMessage();
      else if (method === "session/prompt") seen = updates.endPrompt();
      if (method === "session/load" && replayQuietMs === undefined) replay = updates.endReplay();
    },
    onTooLong(message) {
      problem = message;
      void process.stop();
    },
  });
  const asking = (): Asking => {
    updates.endMessage();
    return { calls: updates.calls, onRequest, cancelled: cancelling.promise };
  };
  const rpc = await connectRpc(stream, asking);
  void process.exited.then(() => updates.end());

  return {
    process,
    updates,
    rpc,
    problem: () => problem,
    async replay() {
      if (!updates.isReplaying) return replay;
      await untilQuiet(() => heardAt, replayQuietMs ?? 0);
      replay = updates.endReplay();
      return replay;
    },
    seen: () => seen,
    listenTo(sessionId) {
      listenedTo = sessionId;
    },
    cancelRequests() {
      cancelling.resolve();
      cancelling = Promise.withResolvers<void>();
    },
    async ended() {
      if ((await Promise.race([process.exited, pause(LATE_MS, null, { ref: false })])) === null) {
        problem ??= "it closed its output but kept running";
        await process.stop();
      }
      return process.exited;
    },
  };
}

/** Loads the SDK only when the first agent starts, because the daemon must start quickly. */
async function connectRpc(stream: Stream, asking: () => Asking): Promise<ClientConnection> {
  const { client } = await import("@agentclientprotocol/sdk/unstable");
  // Agents deviate from the schema of this request, so it is not checked. We read only the fields that we
  // need.
  const unchecked = (params: unknown): RequestPermissionRequest => params as RequestPermissionRequest;
  return client({ name: "kinfold" })
    .onRequest("session/request_permission", unchecked, ({ params }) => answerPermission(asking(), params))
    .onRequest("elicitation/create", ({ params }) => answerElicitation(asking(), params))
    .connect(stream);
}

function takeCall(dialect: Dialect, updates: Updates, message: AnyNotification): void {
  const call = dialect.callUsage?.(message.method, message.params) ?? null;
  if (call !== null) updates.takeCall(call);
  const retrying = dialect.retrying?.(message.method, message.params) ?? null;
  if (retrying !== null) updates.retrying(retrying);
}

async function untilQuiet(heardAt: () => number, quietMs: number): Promise<void> {
  for (let leftMs = quietMs; leftMs > 0; leftMs = heardAt() + quietMs - performance.now()) {
    await pause(leftMs);
  }
}

const LATE_MS = 2_000;
