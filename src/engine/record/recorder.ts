import path from "node:path";
import type { Usage } from "../../contract/index.ts";
import { most } from "../../domain/budget.ts";
import { deliveryIdsIn } from "../../domain/callback.ts";
import { emptySeen, observe, type Seen } from "../../domain/receipt.ts";
import type { AgentUpdate } from "../../drivers/port.ts";
import { type Batch, writeBatch } from "./batch.ts";
import { type DraftStep, OpenMessage } from "./draft.ts";
import type { NewEntry, TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import { MessageFile } from "./message-file.ts";
import { fenceOf } from "../agent/process-lease.ts";
import { activityOf, cleanEntries, entryOfUpdate, isPassedOn, isWorking } from "./update-entry.ts";
import { shownReport } from "../../domain/session.ts";

/** A message that is complete within this time gets no draft. */
const FIRST_DRAFT_MS = 200;
const FLUSH_MS = 50;
/** The most entries and characters in one write, so that a burst does not hold the tree's lock for long. */
const FLUSH_ENTRIES_MAX = 64;
const FLUSH_CHARS_MAX = 256 * 1024;
const RETRY_MS = 1_000;

/**
 * Records a turn in the store: updates become entries and are written in batches; fragments are published
 * live over the feed, and the unfinished message is stored as a draft. When another process has taken over
 * the turn, `onLost` is called once and nothing more is written.
 */
export class Recorder {
  readonly turn: TurnRecord;
  readonly seen: Seen = emptySeen();
  usage: Usage | null = null;
  toolUseCount = 0;
  /** The agent has answered its prompt, so nothing more may be steered into this turn. */
  isOver = false;
  /** Messages steered into the turn that the agent has not acknowledged yet. */
  readonly unacknowledged = new Set<string>();
  /** The agent has worked since the prompt was sent, so the prompt has reached it. */
  hasBegun = false;
  /** The prompt was sent. Updates that arrive from now on belong to this prompt. */
  isPrompted = false;
  /** The latest update, if it reports a retry of a model call; null after any other update. */
  retrying: (AgentUpdate & { readonly kind: "retrying" }) | null = null;
  recorded = 0;
  /** Descriptions of the tool calls that have no result yet, by call id. */
  readonly openCalls = new Map<string, string>();
  #entries: NewEntry[] = [];
  #landed: string[] = [];
  /** Approximate length of each entry. */
  readonly #chars = new WeakMap<NewEntry, number>();
  readonly #files: MessageFile[] = [];
  #fileCount = 0;
  #lastText: string | null = null;
  /** The message that the agent is writing. */
  #open: OpenMessage | null = null;
  /** The message whose text is stored in the row of the draft. */
  #drafted: OpenMessage | null = null;
  #draftedAt = Number.NEGATIVE_INFINITY;
  readonly #calls = new Set<string>();
  #activity = "thinking";
  #timer: NodeJS.Timeout | null = null;
  #dueAt = 0;
  #writing: Promise<unknown> = Promise.resolve();
  /** Whether the row of the turn says that the agent has begun to work in this attempt. */
  #sign: "none" | "unwritten" | "written" = "none";
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
    this.retrying = update.kind === "retrying" ? update : null;
    if (update.kind === "retrying") return;
    this.recorded += 1;
    if (isWorking(update)) this.noteWork();
    this.#activity = activityOf(update) ?? this.#activity;
    if (update.kind === "fragment") {
      this.#grow(update.what, update.text);
      return;
    }
    observe(this.seen, update);
    if (update.kind === "modelCall") return;
    if (update.kind === "usage") {
      this.metered(update.usage);
      return;
    }
    if (update.kind === "text" || update.kind === "thought") this.#say(update);
    else this.#note(update);
    const isDue = this.#entries.length >= FLUSH_ENTRIES_MAX || isPassedOn(update);
    this.#flushSoon(isDue ? 0 : FLUSH_MS);
  }

  /** Records that the agent works on its prompt. The first sign of it in an attempt is written at once. */
  noteWork(): void {
    if (!this.isPrompted) return;
    this.hasBegun = true;
    if (this.#sign !== "none") return;
    this.#sign = "unwritten";
    if (!this.#isLost && !this.#isLast) this.#writeNow();
  }

  /** Resolves when the first sign of work is in the store, or its write has failed and will be retried. */
  async begun(): Promise<void> {
    if (this.#sign === "unwritten") await this.#writing;
  }

  #note(update: Parameters<typeof entryOfUpdate>[0]): void {
    if (update.kind === "toolCall" && !this.#calls.has(update.callId)) {
      this.#calls.add(update.callId);
      this.toolUseCount += 1;
      this.openCalls.set(update.callId, this.seen.lastTool ?? update.tool);
    }
    if (update.kind === "toolResult") this.openCalls.delete(update.callId);
    if (update.kind === "toolResult" && update.ours) this.#landed.push(...deliveryIdsIn(update.text));
    const { entry, chars } = entryOfUpdate(update, { turnId: this.turn.id, at: this.#deps.now() });
    this.#push(entry, chars);
  }

  #push(entry: NewEntry, chars: number): void {
    this.#entries.push(entry);
    this.#chars.set(entry, chars);
  }

  /** Records a complete message. Usually its text has already arrived as fragments. */
  #say(update: AgentUpdate & { kind: "text" | "thought" }): void {
    const { kind, text, chars = text.length } = update;
    const isWhole = this.#open?.kind === kind && this.#open.chars === chars;
    const message = this.#open !== null && isWhole ? this.#open : this.#newMessage(kind);
    if (!isWhole) message.push(text);
    this.#publish(kind, message.end());
    this.#keep(message, {});
  }

  /** Turns the message into an entry. The write of the entry also removes the message's draft. */
  #keep(message: OpenMessage, mark: { cut?: boolean }): void {
    const { kind, file } = message;
    if (message.text === "" && file === null) return;
    const of = { turnId: this.turn.id, isSubagent: false, at: this.#deps.now() };
    const entry = {
      ...of,
      author: "agent",
      kind,
      body: { ...message.body, ...mark },
      isClean: true,
    } as const;
    this.#push(entry, message.text.length);
    if (kind === "text") this.lastText = message.text;
    if (file !== null) this.#files.push(file);
    for (const each of [this.#open, this.#drafted]) if (each?.kind === kind) each.entry ??= entry;
    if (this.#open?.kind === kind) this.#open = null;
  }

  #newMessage(kind: "text" | "thought"): OpenMessage {
    const { config, messageFolder, now } = this.#deps;
    const newFile = (): MessageFile => {
      this.#fileCount += 1;
      // `removeMessageFiles` reads the turn's id from this name.
      const name = `${this.turn.id}-${this.turn.attempt}-${this.#fileCount}.txt`;
      return new MessageFile(path.join(messageFolder, this.turn.sessionId, name));
    };
    return new OpenMessage(kind, { at: now(), charsMax: config.limits.entryCharsMax, newFile });
  }

  /** The turn's last message, as the callback shows it: a long one is cut. Its entry may have more text. */
  get lastText(): string | null {
    return this.#lastText;
  }

  set lastText(text: string | null) {
    this.#lastText = text === null ? null : shownReport(text);
  }

  /** Publishes redacted live text. Text that could be the start of a secret has been held back. */
  #publish(kind: "text" | "thought", text: string): void {
    const { rootId, sessionId, id: turnId } = this.turn;
    if (text !== "") this.#deps.store.publish({ rootId, sessionId, turnId, kind, text });
  }

  #grow(kind: "text" | "thought", text: string): void {
    if (this.#open?.kind !== kind) this.#open = this.#newMessage(kind);
    this.#publish(kind, this.#open.push(text));
    this.#draftSoon();
  }

  #draftSoon(): void {
    if (this.#open === null) return;
    const sinceMs = performance.now() - this.#draftedAt;
    this.#flushSoon(Math.max(FIRST_DRAFT_MS, this.#open.writeEveryMs - sinceMs));
  }

  /** Merges a report of the turn's usage so far. Several sources report, and each may know only a part. */
  metered(usage: Usage): void {
    this.usage = most(this.usage, usage);
  }

  notice(text: string): void {
    this.record({ kind: "notice", text });
  }

  /** Resolves when everything recorded so far is in the store, or a write has failed. */
  async written(): Promise<void> {
    for (let before = -1; this.#entries.length > 0 && this.#entries.length !== before && !this.#isLast;) {
      before = this.#entries.length;
      await this.#writeNow();
    }
  }

  /** Writes everything pending, for a turn that another process will take over. */
  async handOver(): Promise<void> {
    await this.#alone();
    // The open message gets no more text. The process that takes over the turn marks the message as `cut`.
    this.#open?.end();
    this.#draftedAt = Number.NEGATIVE_INFINITY;
    await this.#flush(Number.POSITIVE_INFINITY);
    this.#isLost = true;
  }

  /** Waits for the running write, then makes the turn's last write, which includes everything pending. */
  async last(write: (batch: Batch) => Promise<boolean>): Promise<boolean> {
    await this.#alone();
    this.#cutOpen();
    // Entries that do not fit into the write of the outcome are written before it.
    for (
      let before = -1;
      before !== this.#entries.length && this.#fitting(FLUSH_ENTRIES_MAX) < this.#entries.length;
    ) {
      before = this.#entries.length;
      await this.#flush(FLUSH_ENTRIES_MAX);
    }
    await this.#prepared(Number.POSITIVE_INFINITY);
    const draft = this.#drafted === null ? null : ({ what: "remove", message: null } as const);
    const batch = { ...this.#pending(Number.POSITIVE_INFINITY), draft };
    const writing = write(batch);
    // The caller of `last` gets the write's error. Whoever waits for `#writing` must not get it too.
    this.#writing = writing.catch(() => false);
    const isWritten = await writing;
    if (isWritten) this.#drop(batch);
    return isWritten;
  }

  /** Turns the unfinished message, if there is one, into an entry marked `cut`. */
  #cutOpen(): void {
    const open = this.#open;
    if (open === null) return;
    open.end();
    this.#keep(open, { cut: true });
    this.#open = null;
  }

  async #alone(): Promise<void> {
    this.#isLast = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
  }

  /** Returns the pending batch. Its entries stay pending until `#drop`, so a failed write loses nothing. */
  #pending(entriesMax: number): Batch {
    const entries = this.#entries.slice(0, this.#fitting(entriesMax));
    return { entries, landed: [...this.#landed], draft: this.#draftStep(entries) };
  }

  /** Returns how many pending entries fit into one write, at least one. */
  #fitting(entriesMax: number): number {
    if (entriesMax === Number.POSITIVE_INFINITY) return this.#entries.length;
    let chars = 0;
    const over = this.#entries.findIndex((entry, i) => {
      chars += this.#chars.get(entry) ?? 0;
      return i > 0 && (chars > FLUSH_CHARS_MAX || i >= entriesMax);
    });
    return over === -1 ? this.#entries.length : over;
  }

  /** Returns the draft's next change, or null. The draft waits until one write takes all pending entries. */
  #draftStep(entries: readonly NewEntry[]): DraftStep | null {
    // The first sign of work comes before the first draft is due.
    const open = this.#sign === "unwritten" && !this.#isLast ? null : this.#open;
    const isDue = open !== null && performance.now() - this.#draftedAt >= open.writeEveryMs;
    if (isDue && entries.length === this.#entries.length) {
      const upTo = open.text.length;
      const end = open.ending;
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

  /** Schedules a flush. A flush that is due earlier stays, so constant updates cannot postpone it forever. */
  #flushSoon(asked: number): void {
    if (this.#isLost || this.#isLast) return;
    const waitMs = this.#isRefused ? RETRY_MS : asked;
    const dueAt = performance.now() + waitMs;
    if (this.#timer !== null && this.#dueAt <= dueAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#writeNow();
    }, waitMs);
  }

  /** Flushes as soon as the running write has ended. */
  #writeNow(): Promise<unknown> {
    this.#writing = this.#writing.then(() => this.#flush(FLUSH_ENTRIES_MAX));
    return this.#writing;
  }

  async #flush(entriesMax: number): Promise<void> {
    await this.#prepared(entriesMax);
    const batch = this.#pending(entriesMax);
    const isEmpty = batch.entries.length === 0 && batch.draft === null;
    const isSign = this.#sign === "unwritten";
    if ((isEmpty && !isSign) || this.#isLost) return;
    const { rootId, sessionId, id, fence, attempt } = this.turn;
    const patch = { toolUseCount: this.toolUseCount, ...(isSign ? { reportedAttempt: attempt } : {}) };
    try {
      const written = await this.#deps.store.write(rootId, fenceOf(this.turn), async (tx) => {
        const now = this.#deps.now();
        if (!(await tx.turns.patchRunning(id, fence, patch))) return false;
        await writeBatch(tx, this.turn, { batch, now });
        const evidence = {
          state: "working",
          reason: this.#activity,
          confidence: "certain",
          at: now,
        } as const;
        await tx.sessions.patch(sessionId, { lastActivityAt: now, evidence });
        return true;
      });
      this.#isRefused = false;
      if (isSign) this.#sign = "written";
      this.#drop(batch);
      if (isSign) this.#deps.reached("work.reported");
      if (!isEmpty) this.#deps.reached("entries.appended");
      if (written !== true) this.#lose();
      else if (this.#entries.length > 0) this.#flushSoon(0);
      else this.#draftSoon();
    } catch (error) {
      this.#deps.log.error({ err: error, sessionId }, "writing entries failed; retrying");
      this.#isRefused = true;
      this.#flushSoon(RETRY_MS);
    }
  }

  /** Closes the files that pending entries name, then redacts the entries of the next write. */
  async #prepared(entriesMax: number): Promise<void> {
    for (const file of this.#files.splice(0)) {
      const failure = await file.end();
      if (failure === null) continue;
      const about = { err: failure, sessionId: this.turn.sessionId, path: file.path };
      this.#deps.log.error(about, "writing the file of a long message failed; its remainder is lost");
    }
    const entries = this.#entries.slice(0, this.#fitting(entriesMax));
    for (const [i, clean] of (await cleanEntries(entries)).entries()) {
      this.#entries[i] = clean;
      this.#chars.set(clean, this.#chars.get(entries[i]!) ?? 0);
    }
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#onLost();
  }
}
