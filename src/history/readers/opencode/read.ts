import { noFacts, type SessionFacts } from "../../facts.ts";
import { LINE_BYTES_MAX } from "../../lines/json-lines.ts";
import type {
  BadLine,
  FoundSession,
  Glance,
  HistoryEntry,
  LeftBehind,
  ReadBatch,
  ReadOptions,
  ReadState,
  TailOptions,
  TailPage,
} from "../../port.ts";
import { databaseSource } from "./database-source.ts";
import { type Drawn, entriesOf } from "./entries.ts";
import type { Extra } from "./layout.ts";
import { countUpTo, type SessionRecord, type Source } from "./source.ts";
import { foldMessage, foldSession } from "./fold.ts";
import { treeSource } from "./tree-source.ts";

const VERSION = 1;
const TEXT_MAX = 256 * 1024;
const BATCH_BYTES = 1024 * 1024;
/** How many times a batch is read before giving up, if the agent writes during each read. */
const TRIES_MAX = 8;

/**
 * Messages before the last answer are closed: the agent no longer writes to them, so they are read once. The
 * last answer and everything after it are open: they are read each time. An entry of an open message is
 * yielded as soon as it and all entries before it are final.
 */
interface Position {
  readonly closedId: string | null;
  /** The number of messages up to `closedId`. If this number has changed, earlier messages have changed. */
  readonly closedCount: number;
}

interface Notes {
  readonly closed: SessionFacts;
  /** What was already yielded for open messages: the refs of entries and the names of bad records. */
  readonly given: readonly string[];
  /** The message to which the session was reverted. This message and all later ones count as removed. */
  readonly revertId: string | null;
}

interface Known {
  readonly position: Position;
  readonly notes: Notes;
}

export async function* readBatches(
  found: FoundSession,
  state: ReadState | null,
  options: ReadOptions = {},
): AsyncGenerator<ReadBatch> {
  const source = openSource(found, options);
  const isKnown = state !== null && state.version === VERSION;
  let known: Known = isKnown
    ? { position: state.position as Position, notes: state.notes as Notes }
    : nothingKnown(found);
  let reset = state !== null && !isKnown;
  try {
    for (let tries = 0; ;) {
      options.signal?.throwIfAborted();
      const step = await settledStep(source, { found, known, options, isFirst: tries === 0 });
      tries += 1;
      if (step === null) {
        [known, reset] = [nothingKnown(found), true];
        continue;
      }
      known = step.next;
      yield { ...step.batch, reset };
      reset = false;
      if (step.isLast) return;
    }
  } finally {
    source.close();
  }
}

let lastGlance: Promise<unknown> = Promise.resolve();

/** Runs one glance at a time, because the list of a long session's messages takes much memory. */
export function glance(found: FoundSession): Promise<Glance> {
  const own = lastGlance.then(() => glanceAt(found));
  lastGlance = own;
  return own;
}

/** Reads a short session completely, a long one only at its beginning and end. */
async function glanceAt(found: FoundSession): Promise<Glance> {
  const facts = newFacts(found);
  try {
    const source = openSource(found, {});
    try {
      const session = await mustExist(source);
      const ids = await source.messageIds();
      const whole = ids.length <= HEAD_COUNT + TAIL_COUNT;
      const looked = whole ? ids : [...ids.slice(0, HEAD_COUNT), ...ids.slice(-TAIL_COUNT)];
      for (const id of looked) {
        const message = await source.message(id);
        if (message !== null) foldMessage(facts, message);
      }
      foldSession(facts, session);
      return { facts, whole, problem: null };
    } finally {
      source.close();
    }
  } catch (error) {
    return { facts, whole: false, problem: (error as Error).message };
  }
}

const HEAD_COUNT = 4;
const TAIL_COUNT = 12;

/** A page contains only whole messages. Its offset is the number of messages before it. */
export async function tail(found: FoundSession, options: TailOptions): Promise<TailPage> {
  const source = openSource(found, {});
  const { isSubagent } = found;
  const { textMax = TEXT_MAX } = options;
  try {
    const ids = await source.messageIds();
    const openFrom = await firstOpen(source, ids);
    const pages: HistoryEntry[][] = [];
    let [count, badCount] = [0, 0];
    let first = Math.min(options.beforeOffset ?? ids.length, ids.length);
    while (first > 0) {
      const message = await source.message(ids[first - 1] as string);
      const isClosed = first - 1 < openFrom || source.isFrozen;
      const entries = message === null ? [] : finalOf(entriesOf(message, { isSubagent, isClosed, textMax }));
      if (count > 0 && count + entries.length > options.entriesMax) break;
      pages.unshift(entries);
      count += entries.length;
      badCount += message?.bad.length ?? 0;
      first -= 1;
    }
    return { entries: pages.flat(), beforeOffset: first === 0 ? null : first, badCount };
  } finally {
    source.close();
  }
}

interface Given {
  readonly found: FoundSession;
  readonly known: Known;
  readonly options: ReadOptions;
  readonly isFirst: boolean;
}

interface Step {
  readonly batch: Omit<ReadBatch, "reset">;
  readonly next: Known;
  readonly isLast: boolean;
}

/** Reads one batch from a consistent set of messages. Throws if the agent wrote during every attempt. */
async function settledStep(source: Source, given: Given): Promise<Step | null> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    try {
      const step = await stepOf(source, given);
      if (await source.settled()) return step;
    } catch (error) {
      // An inconsistent read may look like a broken database. Only an error in a consistent read is real.
      if (await source.settled()) throw error;
    }
  }
  throw new Error("it is written faster than it can be read");
}

/** Returns null when earlier messages have changed, so that reading has to begin again. */
async function stepOf(source: Source, { found, known, options, isFirst }: Given): Promise<Step | null> {
  const session = await mustExist(source);
  const ids = await source.messageIds();
  const { closedId, closedCount } = known.position;
  const passed = closedId === null ? 0 : countUpTo(ids, closedId);
  const isUndone = known.notes.revertId !== null && session.revertId === null;
  if (passed !== closedCount || (isFirst && isUndone)) return null;
  const fold = new Reading(found, known, options);
  const openFrom = source.isFrozen ? ids.length : await firstOpen(source, ids);
  let index = passed;
  for (; index < openFrom && !fold.isFull; index += 1) await fold.foldClosed(source, ids[index] as string);
  const isLast = index >= openFrom;
  const position = { closedId: ids[index - 1] ?? null, closedCount: index };
  const facts = structuredClone(fold.closed);
  if (isLast) for (const id of ids.slice(index)) await fold.foldOpen(source, id, facts);
  foldSession(facts, session);
  const leftBehind = isLast ? await leftBehindBy(source, session, { found, ids, known }) : [];
  const revertId = isLast ? session.revertId : known.notes.revertId;
  const notes: Notes = { closed: fold.closed, given: fold.given, revertId };
  const share = ids.length === 0 || isLast ? 1 : index / ids.length;
  return {
    isLast,
    next: { position, notes },
    batch: {
      entries: fold.entries,
      leftBehind,
      bad: fold.bad.slice(0, BAD_NAMED_MAX),
      badCount: fold.bad.length,
      state: () => ({ version: VERSION, position, facts, inline: {}, notes }),
      bytesRead: Math.round(found.sizeBytes * share),
    },
  };
}

const BAD_NAMED_MAX = 20;

class Reading {
  readonly entries: HistoryEntry[] = [];
  readonly bad: BadLine[] = [];
  readonly closed: SessionFacts;
  readonly given: string[] = [];
  readonly #before: ReadonlySet<string>;
  readonly #drawing: { readonly isSubagent: boolean; readonly textMax: number };
  readonly #bytesMax: number;
  #bytes = 0;
  /** Set at the first entry that can still change. The entries after it are held back. */
  #isHeld = false;

  constructor({ isSubagent }: FoundSession, { notes }: Known, options: ReadOptions) {
    const { textMax = TEXT_MAX, chunkBytes = BATCH_BYTES } = options;
    this.#drawing = { isSubagent, textMax };
    this.closed = structuredClone(notes.closed);
    this.#before = new Set(notes.given);
    this.#bytesMax = chunkBytes;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#bytesMax;
  }

  async foldClosed(source: Source, id: string): Promise<void> {
    const message = await source.message(id);
    if (message === null) return;
    this.#bytes += Math.max(1, message.bytes);
    this.bad.push(...message.bad.filter((bad) => !this.#before.has(nameOf(bad))));
    foldMessage(this.closed, message);
    const drawn = entriesOf(message, { ...this.#drawing, isClosed: true });
    this.entries.push(...drawn.map(({ entry }) => entry).filter(({ ref }) => !this.#before.has(ref)));
  }

  async foldOpen(source: Source, id: string, facts: SessionFacts): Promise<void> {
    const message = await source.message(id);
    if (message === null) return;
    foldMessage(facts, message);
    this.bad.push(...message.bad.filter((bad) => !this.#before.has(nameOf(bad))));
    this.given.push(...message.bad.map(nameOf));
    for (const { entry, isFinal } of entriesOf(message, { ...this.#drawing, isClosed: false })) {
      const isGiven = this.#before.has(entry.ref);
      this.#isHeld ||= !isFinal;
      if (isGiven || !this.#isHeld) this.given.push(entry.ref);
      if (!isGiven && !this.#isHeld) this.entries.push(entry);
    }
  }
}

/** Names a bad record, so that it is counted only once. */
function nameOf({ reason }: BadLine): string {
  return `bad: ${reason}`;
}

function finalOf(drawn: readonly Drawn[]): HistoryEntry[] {
  const held = drawn.findIndex(({ isFinal }) => !isFinal);
  return (held < 0 ? drawn : drawn.slice(0, held)).map(({ entry }) => entry);
}

/** Returns the index of the last answer: the messages before it are closed. */
async function firstOpen(source: Source, ids: readonly string[]): Promise<number> {
  const first = Math.max(0, ids.length - OPEN_MAX);
  for (let index = ids.length - 1; index > first; index -= 1) {
    if ((await source.roleOf(ids[index] as string)) === "assistant") return index;
  }
  return first;
}

/** At most this many of the last messages count as open, because one batch reads all open messages. */
const OPEN_MAX = 1000;

/** Returns the range of entries that a revert removed. Their messages stay on disk until the next prompt. */
async function leftBehindBy(
  source: Source,
  { revertId }: SessionRecord,
  { found, ids, known }: { found: FoundSession; ids: readonly string[]; known: Known },
): Promise<LeftBehind[]> {
  if (revertId === null || revertId === known.notes.revertId) return [];
  let afterRef: string | null = null;
  for (let index = ids.findIndex((id) => id >= revertId) - 1; index >= 0 && afterRef === null; index -= 1) {
    const message = await source.message(ids[index] as string);
    const drawing = { isSubagent: found.isSubagent, isClosed: true, textMax: TEXT_MAX };
    afterRef = message === null ? null : (entriesOf(message, drawing).at(-1)?.entry.ref ?? null);
  }
  return [{ inlineId: null, afterRef, beforeRef: null, reason: "the agent was taken back to before them" }];
}

function openSource(
  { path, id, extra }: FoundSession,
  { lineBytesMax = LINE_BYTES_MAX }: ReadOptions,
): Source {
  const { kind, rowid } = extra as Extra;
  if (kind === "tree") return treeSource({ path, id }, lineBytesMax);
  return databaseSource({ path, id, rowid }, lineBytesMax);
}

async function mustExist(source: Source): Promise<SessionRecord> {
  const session = await source.session();
  if (session === null) throw new Error("the session is no longer there");
  return session;
}

function nothingKnown(found: FoundSession): Known {
  return {
    position: { closedId: null, closedCount: 0 },
    notes: { closed: newFacts(found), given: [], revertId: null },
  };
}

function newFacts({ id, isSubagent, extra }: FoundSession): SessionFacts {
  return { ...noFacts(id), isSubagent, rootId: (extra as Extra).rootId };
}
