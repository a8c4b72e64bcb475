import type {
  AnyNotification,
  ClientConnection,
  InitializeResponse,
  RequestPermissionRequest,
  SessionNotification,
  SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import type { AgentAnswer, AgentExit, AgentRequest, AgentUpdate, Replay } from "../port.ts";
import type { AgentProcess } from "../process/process.ts";
import type { Dialect } from "./dialect.ts";
import { answerElicitation, answerPermission } from "./requests.ts";
import type { OwnTool } from "./update/own-tool.ts";
import type { Asking } from "./requests.ts";
import { boundedStream } from "./stream.ts";
import { Updates } from "./update/updates.ts";

export interface ConnectOptions {
  readonly process: AgentProcess;
  readonly onUpdate: (update: AgentUpdate) => void;
  readonly onRequest: (request: AgentRequest) => Promise<AgentAnswer>;
  readonly ownTool?: OwnTool | undefined;
  readonly isNoise?: ((update: SessionUpdate) => boolean) | undefined;
  readonly callUsage?: Dialect["callUsage"] | undefined;
  readonly retrying?: Dialect["retrying"] | undefined;
  readonly replayQuietMs?: number | undefined;
}

/** What is known about a prompt when its answer arrives. */
export interface PromptSeen {
  readonly systemError: string | null;
  /** Above 0, there were several model calls: the model is called again after a tool. */
  readonly toolCalls: number;
  readonly usd: number | null;
}

/** One agent process that speaks ACP: its connection, its updates, and what went wrong with it. */
export interface AgentConnection {
  readonly process: AgentProcess;
  readonly updates: Updates;
  readonly rpc: ClientConnection;
  /** Why we ended the agent ourselves; null if we did not. */
  readonly problem: () => string | null;
  /** The conversation that a load replayed. Resolves when the replay is complete. */
  readonly replay: () => Promise<Replay | null>;
  readonly seen: () => PromptSeen;
  /** Ignores updates of other sessions from now on: an agent may open sub-sessions. */
  readonly listenTo: (sessionId: string) => void;
  /** Answers every open request of the agent as cancelled. */
  readonly cancelRequests: () => void;
  /** Called after the output has closed. Resolves when the process has ended; kills it after `LATE_MS`. */
  readonly ended: () => Promise<AgentExit>;
}

/** Loads the SDK with the first agent only, because the daemon must start quickly. */
export async function connect(options: ConnectOptions): Promise<AgentConnection> {
  const { client } = await import("@agentclientprotocol/sdk/unstable");
  const { process } = options;
  const updates = new Updates(options.onUpdate, options.ownTool);
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
      if (message.method !== "session/update") return takeCall(options, updates, message);
      heardAt = performance.now();
      const { sessionId, update } = (message.params ?? {}) as Partial<SessionNotification>;
      if (!update || sessionId !== (listenedTo ?? sessionId)) return;
      if (options.isNoise?.(update) !== true) updates.take(update);
    },
    onAnswer(method, left) {
      // A prompt sent into a running one belongs to the same turn, so only the last answer ends the turn.
      if (method === "session/prompt" && left > 0) updates.endMessage();
      else if (method === "session/prompt") seen = updates.endPrompt();
      if (method !== "session/load") return;
      if (options.replayQuietMs === undefined) replay = updates.endReplay();
    },
    onTooLong(message) {
      problem = message;
      void process.stop();
    },
  });
  const asking = (): Asking => {
    updates.endMessage();
    return { calls: updates.calls, onRequest: options.onRequest, cancelled: cancelling.promise };
  };
  const rpc = client({ name: "kinfold" })
    .onRequest("session/request_permission", asIs<RequestPermissionRequest>, ({ params }) =>
      answerPermission(asking(), params),
    )
    .onRequest("elicitation/create", ({ params }) => answerElicitation(asking(), params))
    .connect(stream);
  void process.exited.then(() => updates.end());

  return {
    process,
    updates,
    rpc,
    problem: () => problem,
    async replay() {
      if (!updates.isReplaying) return replay;
      await untilQuiet(() => heardAt, options.replayQuietMs ?? 0);
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
    ended: () =>
      endOf(process, () => {
        problem ??= "it closed its output but kept running";
      }),
  };
}

function takeCall(options: ConnectOptions, updates: Updates, message: AnyNotification): void {
  const call = options.callUsage?.(message.method, message.params) ?? null;
  if (call !== null) updates.takeCall(call);
  const retrying = options.retrying?.(message.method, message.params) ?? null;
  if (retrying !== null) updates.retrying(retrying);
}

export function canSteer(answer: InitializeResponse): boolean {
  const steering = answer["_meta"]?.["steering"] as { supported?: boolean } | undefined;
  return steering?.supported === true;
}

async function endOf(process: AgentProcess, onLate: () => void): Promise<AgentExit> {
  const exit = await Promise.race([process.exited, late()]);
  if (exit !== null) return exit;
  onLate();
  await process.stop();
  return process.exited;
}

async function untilQuiet(heardAt: () => number, quietMs: number): Promise<void> {
  for (let leftMs = quietMs; leftMs > 0; leftMs = heardAt() + quietMs - performance.now()) {
    await new Promise((resolve) => setTimeout(resolve, leftMs));
  }
}

const LATE_MS = 2_000;

/** Skips the schema check: agents deviate from it, and we read only the fields that we need. */
function asIs<T>(params: unknown): T {
  return params as T;
}

function late(): Promise<null> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(null), LATE_MS).unref();
  });
}
