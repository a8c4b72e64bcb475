import type { CompactionUpdate, ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Usage } from "../../../contract/index.ts";
import type { AgentUpdate, Replay } from "../../port.ts";
import { CallMeter } from "./call-meter.ts";
import type { CallUsage, Retrying } from "../dialect.ts";
import type { OwnTool } from "./own-tool.ts";
import { type LimitSeen, limitSeen } from "../limit.ts";
import { ToolCalls } from "./tool-call.ts";
import { type Fields, fieldsOf, isFields, numberOf } from "../../../text/fields.ts";

/**
 * Translates an agent's session updates into ours, in one of three modes. `replay` collects the updates of a
 * loaded session. `prompt` passes updates on while a prompt runs. `between` passes on the updates of an agent
 * that works without a prompt. In `between` no answer marks the end of a message, so a pause of a second
 * does.
 */
export class Updates {
  readonly calls: ToolCalls;
  readonly #pass: (update: AgentUpdate) => void;
  #mode: "replay" | "prompt" | "between" = "between";
  #open: { what: "text" | "thought"; text: string; chars: number; messageId: string | null } | null = null;
  #quiet: NodeJS.Timeout | null = null;
  #collected: Collected = {
    userTexts: [],
    toolResults: [],
    toolCalls: [],
    lastText: null,
    userOpen: null,
  };
  #systemError = false;
  #lastText = "";
  #toolCalls = 0;
  #costTotal = 0;
  #costBefore = 0;
  readonly #callMeter = new CallMeter();
  #limit: LimitSeen | null = null;
  /** Summaries of running compactions, by compaction id. */
  readonly #summaries = new Map<string, string>();

  constructor(pass: (update: AgentUpdate) => void, ownTool?: OwnTool) {
    this.#pass = pass;
    this.calls = new ToolCalls((update) => this.#emit(update), ownTool);
  }

  get isReplaying(): boolean {
    return this.#mode === "replay";
  }

  get limit(): LimitSeen | null {
    return this.#limit;
  }

  startReplay(): void {
    this.#mode = "replay";
  }

  endReplay(): Replay {
    this.end();
    this.#mode = "between";
    const { userTexts, toolResults, toolCalls, lastText } = this.#collected;
    return { userTexts, toolResults, toolCalls: userTexts.map((_, at) => toolCalls[at] ?? 0), lastText };
  }

  startPrompt(): void {
    this.endMessage();
    this.#mode = "prompt";
    this.#systemError = false;
    this.#lastText = "";
    this.#toolCalls = 0;
    this.#costBefore = this.#costTotal;
    this.#callMeter.reset();
  }

  endPrompt(): PromptSeen {
    this.end();
    this.#mode = "between";
    const usd = this.#costTotal > 0 ? this.#costTotal - this.#costBefore : null;
    const systemError = this.#systemError ? this.#lastText || "the agent reported an error" : null;
    return { systemError, toolCalls: this.#toolCalls, usd };
  }

  /** Called when the process has ended and no more updates will come. */
  end(): void {
    this.endMessage();
    this.calls.clear();
  }

  take(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        return this.#chunk("text", textOf(update.content), update.messageId);
      case "agent_thought_chunk":
        return this.#chunk("thought", textOf(update.content), update.messageId);
      case "user_message_chunk":
        return this.#userChunk(textOf(update.content), update.messageId);
      case "tool_call":
      case "tool_call_update":
        this.endMessage();
        return this.calls.take(update);
      case "plan":
        this.endMessage();
        return this.#emit({
          kind: "plan",
          steps: update.entries.map((entry) => ({ title: entry.content, status: entry.status })),
        });
      case "compaction_summary_chunk":
        this.#summaries.set(
          update.compactionId,
          (this.#summaries.get(update.compactionId) ?? "") + textOf(update.content),
        );
        return undefined;
      case "compaction_update":
        return this.#compaction(update);
      case "usage_update":
        this.#limit = limitSeen(update["_meta"]) ?? this.#limit;
        return this.#usage(update.cost, update["_meta"]?.["usage"], update.used);
      case "session_info_update":
        return this.#info(update["_meta"]);
      default:
        // Commands, modes and titles are not part of the transcript.
        return undefined;
    }
  }

  /** Counts a model call that a vendor reports outside the protocol's updates. */
  takeCall(call: CallUsage): void {
    this.#callMeter.call(call);
    this.#emitCalls(null);
  }

  retrying(call: Retrying): void {
    if (this.#mode !== "replay") this.#emit({ kind: "retrying", ...call });
  }

  #chunk(what: "text" | "thought", text: string, messageId: string | null | undefined): void {
    const id = messageId ?? null;
    if (this.#open && (this.#open.what !== what || this.#open.messageId !== id)) this.endMessage();
    if (this.#open === null) this.calls.flush();
    this.#open ??= { what, text: "", chars: 0, messageId: id };
    // The fragments carry the whole text; only the assembled message is capped.
    if (this.#open.text.length < MESSAGE_CHARS_MAX) {
      this.#open.text += text.slice(0, MESSAGE_CHARS_MAX - this.#open.text.length);
    }
    this.#open.chars += text.length;
    this.#emit({ kind: "fragment", what, text });
    if (this.#mode === "between") this.#endWhenQuiet();
  }

  #userChunk(text: string, messageId: string | null | undefined): void {
    if (this.#mode !== "replay") return;
    this.endMessage();
    const open = this.#collected.userOpen;
    const last = this.#collected.userTexts.length - 1;
    if (open !== null && open.messageId === (messageId ?? null)) this.#collected.userTexts[last] += text;
    else this.#collected.userTexts.push(text);
    this.#collected.userOpen = { messageId: messageId ?? null };
    this.#collected.lastText = null;
  }

  /** `cost` is for the whole session, tokens are for the prompt. An agent may report either or both. */
  #usage(
    cost: { amount: number; currency: string } | null | undefined,
    counted: unknown,
    used: unknown,
  ): void {
    const isCost = cost?.currency === "USD";
    if (isCost) {
      this.#costTotal = cost.amount;
      if (this.#mode === "replay") this.#costBefore = cost.amount;
    }
    const usd = isCost ? this.#costTotal - this.#costBefore : null;
    if (isFields(counted)) this.#emit({ kind: "usage", usage: { ...countOf(counted), usd } });
    else if (typeof used === "number" && this.#callMeter.context(used)) this.#emitCalls(usd);
    else if (isCost) this.#emit({ kind: "usage", usage: { ...countOf(null), usd } });
    if (this.#mode !== "replay") this.#emit({ kind: "modelCall" });
  }

  #emitCalls(usd: number | null): void {
    this.#emit({ kind: "usage", usage: { ...this.#callMeter.total(), usd } });
  }

  /** The summary comes whole in this update, or in chunks before it. */
  #compaction({ compactionId, status, summary }: CompactionUpdate): void {
    if (status === "in_progress") return;
    const chunks = this.#summaries.get(compactionId) ?? "";
    this.#summaries.delete(compactionId);
    const text = (summary ?? []).map(textOf).join("\n").trim() || chunks.trim();
    if (status !== "completed" || text === "") return;
    this.endMessage();
    this.#emit({ kind: "compaction", summary: text });
  }

  #info(meta: Fields | null | undefined): void {
    const { threadStatus, error } = fieldsOf(meta?.["codex"]);
    if (fieldsOf(threadStatus)["type"] === "systemError") this.#systemError = true;
    const { willRetry, codexErrorInfo } = fieldsOf(error);
    if (willRetry === true)
      this.retrying({ status: codexStatus(codexErrorInfo), attempt: null, attemptsMax: null });
  }

  #endWhenQuiet(): void {
    if (this.#quiet) clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.endMessage(), QUIET_MS).unref();
  }

  /** Completes the open message, because another update is about to follow. */
  endMessage(): void {
    if (this.#quiet) clearTimeout(this.#quiet);
    const open = this.#open;
    this.#open = null;
    if (open === null || open.text === "") return;
    if (open.what === "text") this.#lastText = open.text;
    const { what: kind, text, chars } = open;
    this.#emit({ kind, text, ...(chars > text.length ? { chars } : {}) });
  }

  #emit(update: AgentUpdate): void {
    if (update.kind === "toolCall") this.#toolCalls += 1;
    if (this.#mode === "replay") collect(this.#collected, update);
    else this.#pass(update);
  }
}

/** What the updates showed about a prompt. */
export interface PromptSeen {
  /** The text of a model error, which Codex reports as a normal end of the prompt. */
  readonly systemError: string | null;
  /** If above 0, the model was called more than once: it is called again after each tool result. */
  readonly toolCalls: number;
  readonly usd: number | null;
}

interface Collected {
  readonly userTexts: string[];
  readonly toolResults: string[];
  readonly toolCalls: number[];
  lastText: string | null;
  userOpen: { readonly messageId: string | null } | null;
}

const QUIET_MS = 1_000;
const MESSAGE_CHARS_MAX = 1_048_576;

function collect(into: Collected, update: AgentUpdate): void {
  into.userOpen = null;
  if (update.kind === "text") into.lastText = update.text;
  const at = into.userTexts.length - 1;
  if (update.kind === "toolCall" && at >= 0) into.toolCalls[at] = (into.toolCalls[at] ?? 0) + 1;
  if (update.kind === "toolResult" && update.ours) into.toolResults.push(update.text);
}

/** Codex puts the HTTP status into an object named after the kind of error. */
function codexStatus(info: unknown): number | null {
  const [kind] = Object.values(fieldsOf(info));
  const status = fieldsOf(kind)["httpStatusCode"];
  return typeof status === "number" ? status : null;
}

function countOf(counted: unknown): Omit<Usage, "usd"> {
  const { inputTokens, cachedReadTokens, outputTokens } = fieldsOf(counted);
  return {
    inputTokens: numberOf(inputTokens),
    cachedTokens: numberOf(cachedReadTokens),
    outputTokens: numberOf(outputTokens),
  };
}

function textOf(content: ContentBlock): string {
  switch (content.type) {
    case "text":
      return content.text;
    case "resource_link":
      return content.uri;
    default:
      return `[${content.type}]`;
  }
}
