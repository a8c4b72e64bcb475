import type { PromptResponse } from "@agentclientprotocol/sdk/unstable";
import type { Steer } from "../../contract/index.ts";
import type { AgentHandle, PromptEnd, StopReport } from "../port.ts";
import { type HandleOptions, ProcessHandle } from "../process/handle.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { describeError, httpStatus } from "./failure.ts";
import { limitedUntil } from "./limit.ts";
import { usageOf } from "./update/usage.ts";

interface AcpHandleOptions extends Omit<HandleOptions, "process"> {
  readonly connection: AgentConnection;
  readonly steer: Steer;
  readonly countsLastCall: boolean;
}

/** An open agent session. Its methods never reject: failures are part of their results. */
export class AcpHandle extends ProcessHandle {
  readonly #connection: AgentConnection;
  readonly #steer: Steer;
  readonly #countsLastCall: boolean;
  #prompting: Promise<PromptEnd> | null = null;
  /** The newest prompt sent. The turn ends when this prompt ends. */
  #newest: Promise<PromptEnd> | null = null;

  constructor(options: AcpHandleOptions) {
    super({ ...options, process: options.connection.process });
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
    if (this.#steer === "none") return "refused";
    if (this.#steer === "inject") return this.#inject(text);
    this.#newest = this.#ask(text);
    return this.#steer === "queue" ? "queued" : "restarted";
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
    void this.process.noteDescendants().finally(() => this.#sendCancel());
  }

  #sendCancel(): void {
    this.#connection.cancelRequests();
    const params = { sessionId: this.agentSessionId };
    // A closed connection cannot send the cancel. It needs none, because its prompt has already ended.
    this.#connection.rpc.agent.notify("session/cancel", params).catch(() => this.#connection.rpc.close());
  }

  override async stop(graceMs: number): Promise<StopReport> {
    const report = await super.stop(graceMs);
    this.#connection.rpc.close();
    return report;
  }

  protected running(): Promise<PromptEnd> | null {
    return this.#prompting;
  }

  async #prompt(text: string): Promise<PromptEnd> {
    this.process.noteBaseline();
    this.#connection.updates.startPrompt();
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
