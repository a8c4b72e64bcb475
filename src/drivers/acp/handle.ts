import type { PromptResponse } from "@agentclientprotocol/sdk/unstable";
import type { Steer } from "../../contract/index.ts";
import type { AgentHandle, PromptEnd, Replay, StopReport } from "../port.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { describeError, httpStatus, within } from "./failure.ts";
import { limitedUntil } from "./limit.ts";
import { usageOf } from "./update/usage.ts";

export interface HandleOptions {
  readonly connection: AgentConnection;
  readonly agentSessionId: string;
  readonly agentVersion: string | null;
  readonly model: string | null;
  readonly replay: Replay | null;
  readonly steer: Steer;
  readonly countsLastCall: boolean;
}

/** An open agent session. Its methods never reject: failures are part of their results. */
export class AcpHandle implements AgentHandle {
  readonly agentSessionId: string;
  readonly agentVersion: string | null;
  readonly model: string | null;
  readonly replay: Replay | null;
  readonly exited: AgentHandle["exited"];
  readonly #connection: AgentConnection;
  readonly #steer: Steer;
  readonly #countsLastCall: boolean;
  #prompting: Promise<PromptEnd> | null = null;
  /** The newest prompt sent. The turn ends when this prompt ends. */
  #newest: Promise<PromptEnd> | null = null;

  constructor(options: HandleOptions) {
    this.agentSessionId = options.agentSessionId;
    this.agentVersion = options.agentVersion;
    this.model = options.model;
    this.replay = options.replay;
    this.exited = options.connection.process.exited;
    this.#connection = options.connection;
    this.#steer = options.steer;
    this.#countsLastCall = options.countsLastCall;
  }

  prompt(text: string): Promise<PromptEnd> {
    if (this.#prompting !== null) {
      return Promise.resolve({ ...failed("a prompt is already running"), isAnswered: false });
    }
    this.#prompting = this.#prompt(text).finally(() => {
      this.#prompting = null;
    });
    return this.#prompting;
  }

  async steer(text: string): ReturnType<AgentHandle["steer"]> {
    if (this.#prompting === null) return "refused";
    switch (this.#steer) {
      case "inject":
        return this.#inject(text);
      case "queue":
        this.#newest = this.#ask(text);
        return "queued";
      case "restart":
        this.#newest = this.#ask(text);
        return "restarted";
      case "none":
        return "refused";
    }
  }

  async #inject(text: string): Promise<"injected" | "queued" | "refused" | "lost"> {
    try {
      const answer = await this.#connection.rpc.agent.request<{ outcome?: string }>("_session/steering", {
        sessionId: this.agentSessionId,
        prompt: [{ type: "text", text }],
        _meta: { steering: { idleBehavior: "promptRequired" } },
      });
      if (answer.outcome === "injected") return "injected";
      return answer.outcome === "startedNewTurn" ? "queued" : "refused";
    } catch {
      return this.#connection.rpc.signal.aborted ? "lost" : "refused";
    }
  }

  cancel(): void {
    void this.#connection.process.look().finally(() => this.#sendCancel());
  }

  #sendCancel(): void {
    this.#connection.cancelRequests();
    const params = { sessionId: this.agentSessionId };
    // A closed connection cannot carry the cancel, but its closing has already ended the prompt.
    this.#connection.rpc.agent.notify("session/cancel", params).catch(() => this.#connection.rpc.close());
  }

  async stop(graceMs: number): Promise<StopReport> {
    const { process } = this.#connection;
    if (graceMs > 0) await this.#endOrderly(graceMs);
    const report = await process.stop();
    this.#connection.rpc.close();
    return report;
  }

  background(since: number): Promise<boolean> {
    return this.#connection.process.background(since);
  }

  descendants(): ReturnType<AgentHandle["descendants"]> {
    return this.#connection.process.descendants();
  }

  /** Cancels the prompt, closes the input, then sends a signal: each in a share of the grace period. */
  async #endOrderly(graceMs: number): Promise<void> {
    const { process } = this.#connection;
    if (this.#prompting !== null) {
      this.cancel();
      await within(this.#prompting, graceMs / 2);
    }
    await process.endInput();
    if (await within(process.exited, graceMs / 4)) return;
    await process.terminate();
    await within(process.exited, graceMs / 4);
  }

  async #prompt(text: string): Promise<PromptEnd> {
    const { process, updates } = this.#connection;
    process.noteBaseline();
    updates.startPrompt();
    this.#newest = this.#ask(text);
    for (;;) {
      const asked: Promise<PromptEnd> = this.#newest;
      const end = await asked;
      if (asked === this.#newest) return end;
    }
  }

  async #ask(text: string): Promise<PromptEnd> {
    const { rpc } = this.#connection;
    try {
      const response = await rpc.agent.request("session/prompt", {
        sessionId: this.agentSessionId,
        prompt: [{ type: "text", text }],
      });
      return this.#answered(response);
    } catch (error) {
      if (!rpc.signal.aborted) {
        const errorStatus = httpStatus(error);
        return { ...failed(describeError(error)), errorStatus, limitedUntil: this.#limitedUntil(error) };
      }
      return this.#lost();
    }
  }

  #answered(response: PromptResponse): PromptEnd {
    const { systemError, toolCalls, usd } = this.#connection.seen();
    const usage = usageOf(response, usd);
    const isUsagePartial = this.#countsLastCall && toolCalls > 0;
    if (systemError !== null && response.stopReason === "end_turn") {
      return { ...failed(systemError), usage, isUsagePartial, limitedUntil: this.#limitedUntil(systemError) };
    }
    const stopReason = STOP_REASONS.has(response.stopReason) ? response.stopReason : "error";
    const error = stopReason === "error" ? `unknown stop reason ${String(response.stopReason)}` : null;
    return { stopReason, isAnswered: true, error, exit: null, usage, isUsagePartial };
  }

  #limitedUntil(error: unknown): number | null {
    return limitedUntil(error, Date.now(), this.#connection.updates.limit);
  }

  async #lost(): Promise<PromptEnd> {
    const exit = await this.#connection.ended();
    const { usd } = this.#connection.updates.endPrompt();
    const usage = usd === null ? null : { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd };
    const problem = this.#connection.problem();
    const lost = { isAnswered: false, exit, usage };
    if (problem !== null) return { ...lost, stopReason: "error", error: `the agent was ended: ${problem}` };
    return { ...lost, stopReason: "exited", error: null };
  }
}

const STOP_REASONS: ReadonlySet<string> = new Set([
  "end_turn",
  "max_tokens",
  "max_turn_requests",
  "refusal",
  "cancelled",
]);

function failed(error: string): PromptEnd {
  return { stopReason: "error", isAnswered: true, error, exit: null, usage: null };
}
