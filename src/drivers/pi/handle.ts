import type { Usage } from "../../contract/index.ts";
import { limitedUntil } from "../acp/limit.ts";
import { type Fields, isFields } from "../../text/fields.ts";
import type { AgentUpdate, PromptEnd } from "../port.ts";
import { type HandleOptions, ProcessHandle } from "../process/handle.ts";
import type { Channel } from "./channel.ts";
import { sum, updatesOf, usageOf } from "./updates.ts";

interface PiHandleOptions extends HandleOptions {
  readonly channel: Channel;
  readonly onUpdate: (update: AgentUpdate) => void;
}

/** A prompt ends when pi has reported its end, is not retrying or compacting, and has no pending messages. */
export class PiHandle extends ProcessHandle {
  readonly #channel: Channel;
  readonly #onUpdate: (update: AgentUpdate) => void;
  #running: Running | null = null;

  constructor(options: PiHandleOptions) {
    super(options);
    this.#channel = options.channel;
    this.#onUpdate = options.onUpdate;
    void options.channel.closed.then(() => this.#lost());
  }

  async prompt(text: string): Promise<PromptEnd> {
    if (this.#running !== null) {
      return { ...failed("a prompt is already running"), isAnswered: false };
    }
    this.process.noteBaseline();
    const running: Running = {
      ...Promise.withResolvers<PromptEnd>(),
      usage: null,
      last: null,
      isRetrying: false,
    };
    this.#running = running;
    const answer = await this.#channel.send({ type: "prompt", message: text });
    // If the channel has closed, the prompt ends when the process exits.
    const isRefused = !answer.ok && !this.#channel.isClosed();
    if (isRefused && this.#running === running) this.#finish(failed(answer.error));
    return running.promise;
  }

  async steer(text: string): Promise<"injected" | "refused" | "lost"> {
    if (this.#running === null) return "refused";
    const answer = await this.#channel.send({ type: "steer", message: text });
    if (answer.ok) return "injected";
    return this.#channel.isClosed() ? "lost" : "refused";
  }

  cancel(): void {
    void this.process.noteDescendants().finally(() => this.#channel.send({ type: "abort" }));
  }

  protected running(): Promise<PromptEnd> | null {
    return this.#running?.promise ?? null;
  }

  take(event: Fields & { readonly type: string }): void {
    for (const update of updatesOf(event)) this.#onUpdate(update);
    const running = this.#running;
    if (running === null) return;
    if (event.type === "message_end") this.#count(running, event["message"]);
    if (event.type === "auto_retry_start") running.isRetrying = true;
    if (event.type === "auto_retry_end") running.isRetrying = false;
    const isEnd = event.type === "agent_end" || event.type === "auto_retry_end";
    if (isEnd) void this.#endIfQuiet(running);
  }

  #count(running: Running, message: unknown): void {
    if (!isFields(message) || message["role"] !== "assistant") return;
    running.last = message;
    running.usage = sum(running.usage, usageOf(message));
    if (running.usage !== null) this.#onUpdate({ kind: "usage", usage: running.usage });
  }

  /** Ends the prompt unless pi is still working: it may be retrying or compacting. */
  async #endIfQuiet(running: Running): Promise<void> {
    const state = await this.#channel.send({ type: "get_state" });
    if (!state.ok || this.#running !== running) return;
    const { isStreaming, isCompacting, pendingMessageCount } = state.data;
    if (isStreaming === true || isCompacting === true || running.isRetrying) return;
    if (typeof pendingMessageCount === "number" && pendingMessageCount > 0) return;
    this.#finish(endOf(running));
  }

  #lost(): void {
    const running = this.#running;
    if (running === null) return;
    void this.exited.then((exit) => {
      const end = { isAnswered: false, error: null, exit, usage: running.usage };
      if (this.#running === running) this.#finish({ ...end, stopReason: "exited" });
    });
  }

  #finish(end: PromptEnd): void {
    this.#running?.resolve(end);
    this.#running = null;
  }
}

interface Running extends PromiseWithResolvers<PromptEnd> {
  usage: Usage | null;
  last: Fields | null;
  isRetrying: boolean;
}

function endOf({ last, usage }: Running): PromptEnd {
  const end = { isAnswered: true, error: null, exit: null, usage };
  switch (last?.["stopReason"]) {
    case "aborted":
      return { ...end, stopReason: "cancelled" };
    case "error":
      return { ...failed(String(last["errorMessage"] ?? "the model failed")), usage };
    case "length":
      return { ...end, stopReason: "max_tokens" };
    default:
      return { ...end, stopReason: "end_turn" };
  }
}

function failed(error: string): PromptEnd {
  const limit = limitedUntil(error);
  return { stopReason: "error", isAnswered: true, error, exit: null, usage: null, limitedUntil: limit };
}
