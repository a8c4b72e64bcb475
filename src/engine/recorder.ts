import type { Usage } from "../contract/index.ts";
import { most } from "../domain/budget.ts";
import { deliveryIdsIn } from "../domain/callback.ts";
import { emptySeen, observe, type Seen } from "../domain/receipt.ts";
import { redact } from "../domain/redact.ts";
import { LiveRedactor } from "../domain/redact-live.ts";
import { oneLine } from "../text/fence.ts";
import type { AgentUpdate } from "../drivers/port.ts";
import { land } from "../kernel/admit.ts";
import { appendEntries } from "../kernel/entry.ts";
import { keepCompactions } from "./checkpoints.ts";
import { type DraftStep, OpenMessage, writeDraft } from "./draft.ts";
import type { NewEntry, Tx, TurnRecord } from "../store/port.ts";
import type { EngineDeps } from "./deps.ts";

/** A message that ends sooner needs no draft. */
const FIRST_DRAFT_MS = 200;
const FLUSH_MS = 50;
const FLUSH_ENTRIES = 64;
/** One write takes no more than this, so that a flood does not hold up everyone else. */
const FLUSH_ENTRIES_MAX = 512;
const RETRY_MS = 1_000;

export interface Batch {
  readonly entries: readonly NewEntry[];
  /** Delivery ids seen in results of our own tools. */
  readonly landed: readonly string[];
  /** What becomes of the draft; null leaves it as it is. */
  readonly draft: DraftStep | null;
}

/**
 * What a turn does, on its way into the store: updates become entries in batches; fragments go live
 * over the feed, and what they have made of a message is kept as its draft. When the turn is no
 * longer ours, `onLost` is called once and nothing more is written.
 */
export class Recorder {
  readonly turn: TurnRecord;
  readonly seen: Seen = emptySeen();
  usage: Usage | null = null;
  lastText: string | null = null;
  toolUseCount = 0;
  /** The agent has answered: nothing more is put into this turn. */
  isOver = false;
  /** Messages steered into it of which the agent has not said that it took them. */
  readonly unacknowledged = new Set<string>();
  /** The prompt was sent, and the agent has worked since: it has what was sent. */
  hasBegun = false;
  /** From here on what the agent does is about the prompt. */
  isPrompted = false;
  /** How many updates there have been. */
  recorded = 0;
  #entries: NewEntry[] = [];
  #landed: string[] = [];
  readonly #live = { text: new LiveRedactor(), thought: new LiveRedactor() };
  /** The message that is being written, and the one whose text is in the draft's row. */
  #open: OpenMessage | null = null;
  #drafted: OpenMessage | null = null;
  #draftedAt = Number.NEGATIVE_INFINITY;
  readonly #calls = new Set<string>();
  #doing = "thinking";
  #timer: NodeJS.Timeout | null = null;
  #dueAt = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #isRefused = false;
  #isLast = false;
  #isLost = false;
  readonly #deps: EngineDeps;
  readonly #onLost: () => void;

  constructor(deps: EngineDeps, turn: TurnRecord, onLost: () => void) {
    this.#deps = deps;
    this.turn = turn;
    this.#onLost = onLost;
  }

  record(update: AgentUpdate): void {
    this.recorded += 1;
    if (this.isPrompted && isWorking(update)) this.hasBegun = true;
    if (update.kind === "fragment") {
      this.#grow(update.what, this.#live[update.what].push(update.text));
      this.#doing = doing({ kind: update.what }) ?? this.#doing;
      return;
    }
    if (update.kind === "text" || update.kind === "thought") {
      this.#publish(update.kind, this.#live[update.kind].flush());
    }
    observe(this.seen, update);
    if (update.kind === "modelCall") return;
    if (update.kind === "usage") {
      this.metered(update.usage);
      return;
    }
    if (update.kind === "text") this.lastText = update.text;
    if (update.kind === "toolCall" && !this.#calls.has(update.callId)) {
      this.#calls.add(update.callId);
      this.toolUseCount += 1;
    }
    if (update.kind === "toolResult" && update.ours) this.#landed.push(...deliveryIdsIn(update.text));
    this.#doing = doing(update) ?? this.#doing;
    const entry = entryOfUpdate(update, this.turn.id, this.#deps.now());
    this.#entries.push(entry);
    this.#close(entry);
    const isDue = this.#entries.length >= FLUSH_ENTRIES || isPassedOn(update);
    this.#flushSoon(isDue ? 0 : FLUSH_MS);
  }

  /** Live text goes out without secrets too, and those come in pieces: what may be one is held back. */
  #publish(kind: "text" | "thought", text: string): void {
    const { rootId, sessionId, id: turnId } = this.turn;
    if (text !== "") this.#deps.store.publish({ rootId, sessionId, turnId, kind, text });
  }

  #grow(kind: "text" | "thought", shown: string): void {
    this.#publish(kind, shown);
    if (this.#open?.kind !== kind) this.#open = new OpenMessage(kind, this.#deps.now());
    this.#open.text += shown;
    this.#draftSoon();
  }

  #draftSoon(): void {
    if (this.#open === null) return;
    const sinceMs = performance.now() - this.#draftedAt;
    this.#flushSoon(Math.max(FIRST_DRAFT_MS, this.#open.writeEveryMs - sinceMs));
  }

  /** The entry of the open message ends it. pi tells of a thought after it has begun its text. */
  #close(entry: NewEntry): void {
    for (const message of [this.#open, this.#drafted]) {
      if (message?.kind === entry.kind) message.entry ??= entry;
    }
    if (this.#open?.entry === entry) this.#open = null;
  }

  /** What the turn has used so far, from one of several sources that may each know only a part. */
  metered(usage: Usage): void {
    this.usage = most(this.usage, usage);
  }

  notice(text: string): void {
    this.record({ kind: "notice", text });
  }

  /** Writes what has gathered, for a turn that is left to someone else. */
  async handOver(): Promise<void> {
    await this.#alone();
    // Nothing more comes of the open message here: whoever takes the turn up marks it as cut.
    if (this.#open !== null) this.#open.text += this.#live[this.#open.kind].flush();
    this.#draftedAt = Number.NEGATIVE_INFINITY;
    await this.#flush(Number.POSITIVE_INFINITY);
    this.#isLost = true;
  }

  /** The turn's last write, with all that has gathered: it begins when no other is under way, and none follows. */
  async last(write: (batch: Batch) => Promise<boolean>): Promise<boolean> {
    await this.#alone();
    this.#cutOpen();
    const draft = this.#drafted === null ? null : ({ what: "remove", message: null } as const);
    const batch = { ...this.#pending(Number.POSITIVE_INFINITY), draft };
    const writing = write(batch);
    this.#writing = writing.catch(() => false);
    const isWritten = await writing;
    if (isWritten) this.#drop(batch);
    return isWritten;
  }

  /** A message that never ended is kept as far as it came. */
  #cutOpen(): void {
    const open = this.#open;
    if (open === null) return;
    const text = open.text + this.#live[open.kind].flush();
    this.#open = null;
    if (text === "") return;
    const of = { turnId: this.turn.id, isSubagent: false, at: this.#deps.now() };
    open.entry = { ...of, author: "agent", kind: open.kind, body: { text, cut: true } };
    this.#entries.push(open.entry);
    if (open.kind === "text") this.lastText = text;
  }

  async #alone(): Promise<void> {
    this.#isLast = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
  }

  /** What has gathered so far. It stays until `#drop`, so that a failed write loses nothing. */
  #pending(entriesMax: number): Batch {
    const entries = this.#entries.slice(0, entriesMax);
    return { entries, landed: [...this.#landed], draft: this.#draftStep(entries) };
  }

  /** The open message is written behind all entries before it, never ahead of one. */
  #draftStep(entries: readonly NewEntry[]): DraftStep | null {
    const open = this.#open;
    const isDue = open !== null && performance.now() - this.#draftedAt >= open.writeEveryMs;
    if (isDue && entries.length === this.#entries.length) {
      const upTo = open.text.length;
      const end = this.#live[open.kind].peek();
      if (open.isNew(upTo, end)) {
        return { what: open === this.#drafted ? "grow" : "put", message: open, upTo, end };
      }
    }
    const became = this.#drafted?.entry ?? null;
    return became !== null && entries.includes(became) ? { what: "remove", message: null } : null;
  }

  #drop({ entries, landed, draft }: Batch): void {
    this.#entries.splice(0, entries.length);
    this.#landed.splice(0, landed.length);
    if (draft === null) return;
    this.#drafted = draft.message;
    if (draft.what === "remove") return;
    draft.message.stored = draft.upTo;
    draft.message.storedEnd = draft.end;
    this.#draftedAt = performance.now();
  }

  /** A flush that is due sooner stands, or updates without a pause would put it off for ever. */
  #flushSoon(asked: number): void {
    if (this.#isLost || this.#isLast) return;
    const waitMs = this.#isRefused ? RETRY_MS : asked;
    const dueAt = performance.now() + waitMs;
    if (this.#timer !== null && this.#dueAt <= dueAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#writing = this.#writing.then(() => this.#flush(FLUSH_ENTRIES_MAX));
    }, waitMs);
  }

  async #flush(entriesMax: number): Promise<void> {
    const batch = this.#pending(entriesMax);
    if ((batch.entries.length === 0 && batch.draft === null) || this.#isLost) return;
    const { rootId, sessionId, id, fence } = this.turn;
    try {
      const isOurs = await this.#deps.store.write(rootId, async (tx) => {
        const now = this.#deps.now();
        if (!(await tx.turns.patchRunning(id, fence, { toolUseCount: this.toolUseCount }))) return false;
        await writeBatch(tx, this.turn, batch, now);
        const evidence = { state: "working", reason: this.#doing, confidence: "certain", at: now } as const;
        await tx.sessions.patch(sessionId, { lastActivityAt: now, evidence });
        return true;
      });
      this.#isRefused = false;
      this.#drop(batch);
      this.#deps.reached("entries.appended");
      if (!isOurs) this.#lose();
      else if (this.#entries.length > 0) this.#flushSoon(0);
      else this.#draftSoon();
    } catch (error) {
      this.#deps.log.error({ err: error, sessionId }, "entries could not be written; kept for the next try");
      this.#isRefused = true;
      this.#flushSoon(RETRY_MS);
    }
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#onLost();
  }
}

/** Part of the flush and of the settle. */
export async function writeBatch(tx: Tx, turn: TurnRecord, batch: Batch, now: number): Promise<void> {
  const appended = await appendEntries(tx, turn.sessionId, batch.entries);
  await keepCompactions(tx, turn, appended);
  if (batch.draft !== null) await writeDraft(tx, turn, batch.draft, now);
  for (const id of batch.landed) {
    const message = await tx.messages.byDeliveryId(turn.sessionId, id);
    if (message !== null && message.status === "taken") await land(tx, message, now);
  }
}

/** Whether an agent that sends this is at work on what it was sent. */
export function isWorking({ kind }: AgentUpdate): boolean {
  return kind !== "usage" && kind !== "notice" && kind !== "compaction";
}

/** What a child shall inherit must be in the store before the call that spawns it is worked off. */
function isPassedOn(update: AgentUpdate): boolean {
  return update.kind === "toolCall" && PASSES_ON.has(update.tool);
}

const PASSES_ON: ReadonlySet<string> = new Set(["spawn_session", "create_session", "subagent"]);

function entryOfUpdate(update: AgentUpdate, turnId: string, at: number): NewEntry {
  const base = { turnId, isSubagent: false, at };
  switch (update.kind) {
    case "text":
    case "thought":
      return { ...base, author: "agent", kind: update.kind, body: { text: update.text } };
    case "toolCall": {
      const { callId, tool, input, command, paths } = update;
      const body = { text: update.title, tool, callId, input, command, paths: paths && [...paths] };
      return { ...base, author: "agent", kind: "toolCall", body };
    }
    case "toolResult": {
      const { callId, tool, ok, exitCode, command, text } = update;
      return {
        ...base,
        author: "tool",
        kind: "toolResult",
        body: { text, tool, callId, ok, exitCode, command },
      };
    }
    case "plan": {
      const steps = update.steps.map((step) => ({ ...step }));
      const text = steps.map((step) => `- ${step.title}`).join("\n");
      return { ...base, author: "agent", kind: "plan", body: { text, steps } };
    }
    case "compaction": {
      const body = {
        text: "the agent has replaced its conversation so far by a summary",
        input: { summary: update.summary },
      };
      return { ...base, author: "daemon", kind: "notice", body };
    }
    default: {
      const text = update.kind === "notice" ? update.text : "";
      return { ...base, author: "daemon", kind: "notice", body: { text } };
    }
  }
}

function doing(update: AgentUpdate | { readonly kind: "text" | "thought" }): string | null {
  switch (update.kind) {
    case "thought":
      return "thinking";
    case "text":
      return "writing";
    case "toolCall":
      return oneLine(redact(update.command ?? update.title), 80);
    default:
      return null;
  }
}
