import type { OpenBytes } from "./byte-file.ts";
import {
  CHUNK_BYTES,
  LINE_BYTES_MAX,
  type LinePosition,
  readRows,
  readRowsBack,
  type Row,
} from "./json-lines.ts";
import type {
  BadLine,
  FoundSession,
  Glance,
  HistoryEntry,
  HistoryReader,
  LeftBehind,
  ReadBatch,
  ReadOptions,
  ReadState,
  SessionFacts,
  TailOptions,
  TailPage,
} from "../port.ts";

/** The state that is built up from row to row. A format changes `facts`, `inline` and `notes` in place. */
export interface Fold<Notes> {
  readonly found: FoundSession;
  readonly facts: SessionFacts;
  readonly inline: Map<string, SessionFacts>;
  /** Small plain JSON that a format keeps from one row to the next. */
  readonly notes: Notes;
  readonly entries: HistoryEntry[];
  readonly leftBehind: LeftBehind[];
  readonly textMax: number;
  /** The offset of the earlier row where an entry began. Set when a later row completes that entry. */
  heldFrom: number | null;
}

/** Interprets one file format, row by row. */
export interface RowFormat<Notes> {
  /** Increase this number when facts or notes change their meaning, so that all files are read again. */
  readonly version: number;
  readonly open?: OpenBytes;
  begin(found: FoundSession): { facts: SessionFacts; notes: Notes };
  /** If this method throws, the row is counted as a bad line with the error's message. */
  foldRow(fold: Fold<Notes>, row: Row): void;
  /** Called where rows inside a file were skipped. A call or turn that was open may have ended in the gap. */
  gap?(fold: Fold<Notes>): void;
  /** Called at the end of each page but the last. Adds an entry that still waits for a later row. */
  endPage?(fold: Fold<Notes>): void;
  /** Called at the end of each batch to read the files beside the transcript. Must not throw. */
  foldSidecars?(fold: Fold<Notes>, at: { isLast: boolean }): Promise<void>;
}

const TEXT_MAX = 256 * 1024;
const HEAD_BYTES = 16 * 1024;
const TAIL_BYTES = 32 * 1024;
/** If the head or the tail of the file contains no complete row, this many bytes are searched for one. */
const FAR_BYTES = 4 * 1024 * 1024;

export function rowReader<Notes>(format: RowFormat<Notes>): Pick<HistoryReader, "read" | "glance" | "tail"> {
  return {
    read: (found, state, options) => readBatches(format, found, { state, options: options ?? {} }),
    glance: (found) => glance(format, found),
    tail: (found, options) => tail(format, found, options),
  };
}

async function* readBatches<Notes>(
  format: RowFormat<Notes>,
  found: FoundSession,
  { state, options }: { state: ReadState | null; options: ReadOptions },
): AsyncGenerator<ReadBatch> {
  const known = state !== null && state.version === format.version ? state : null;
  const textMax = options.textMax ?? TEXT_MAX;
  let fold = known === null ? newFold(format, found, textMax) : foldFrom<Notes>(known, found, textMax);
  const from = known === null ? null : (known.position as LinePosition);
  let isAnew = state !== null && known === null;
  let batchCount = 0;
  for await (const chunk of readRows(found.path, from, lineOptions(format, options))) {
    const batch = ++batchCount;
    if (chunk.reset) fold = newFold(format, found, textMax);
    const refused = foldAll(format, fold, chunk.rows);
    await format.foldSidecars?.(fold, chunk);
    yield {
      reset: chunk.reset || isAnew,
      entries: takenOnce(fold.entries.splice(0)),
      leftBehind: fold.leftBehind.splice(0),
      bad: [...chunk.bad, ...refused],
      badCount: chunk.badCount + refused.length,
      state() {
        if (batch !== batchCount)
          throw new Error("state() of a batch was called after the next batch was requested");
        return stateOf(format, fold, chunk.position);
      },
      bytesRead: chunk.position.offset,
    };
    isAnew = false;
  }
}

async function glance<Notes>(format: RowFormat<Notes>, found: FoundSession): Promise<Glance> {
  const fold = newFold(format, found, TEXT_MAX);
  try {
    const headEnd = await foldHead(format, fold);
    const tailRows = await rowsBack(format, found, { downTo: headEnd, bytes: TAIL_BYTES });
    const whole = tailRows.reached;
    if (!whole) format.gap?.(fold);
    foldAll(format, fold, tailRows.rows);
    await format.foldSidecars?.(fold, { isLast: true });
    return { facts: fold.facts, whole, problem: null };
  } catch (error) {
    return { facts: fold.facts, whole: false, problem: (error as Error).message };
  }
}

/** Folds the first rows and returns the offset where they end. */
async function foldHead<Notes>(format: RowFormat<Notes>, fold: Fold<Notes>): Promise<number> {
  const options = lineOptions(format, { chunkBytes: HEAD_BYTES, lineBytesMax: FAR_BYTES });
  let end = 0;
  for await (const { rows, position } of readRows(fold.found.path, null, options)) {
    foldAll(format, fold, rows);
    end = position.offset;
    if (rows.length > 0 || end >= FAR_BYTES) break;
  }
  return end;
}

/** Reads rows backwards until an offset or a number of bytes is reached. Returns the rows in file order. */
async function rowsBack<Notes>(
  format: RowFormat<Notes>,
  found: FoundSession,
  limit: { downTo: number; bytes: number },
): Promise<{ rows: Row[]; reached: boolean }> {
  const rows: Row[] = [];
  const options = lineOptions(format, { chunkBytes: TAIL_BYTES, lineBytesMax: FAR_BYTES });
  let end: number | null = null;
  for await (const row of readRowsBack(found.path, null, options)) {
    if (row.offset < limit.downTo) return { rows: rows.toReversed(), reached: true };
    end ??= row.offset;
    if (!("bad" in row)) rows.push(row);
    const passed = end - row.offset;
    if (row.offset > limit.downTo && passed > limit.bytes && (rows.length > 0 || passed > FAR_BYTES))
      return { rows: rows.toReversed(), reached: false };
  }
  return { rows: rows.toReversed(), reached: true };
}

/**
 * Collects rows backwards and then folds them in file order, because entries can only be made in file order.
 * If that gives too few entries, twice as many rows are collected.
 */
async function tail<Notes>(
  format: RowFormat<Notes>,
  found: FoundSession,
  { entriesMax, beforeOffset, textMax }: TailOptions,
): Promise<TailPage> {
  const rows: Row[] = [];
  let badCount = 0;
  let wanted = Math.max(16, entriesMax);
  const wants = { entriesMax, textMax, isLast: beforeOffset === undefined };
  const options = lineOptions(format, { chunkBytes: TAIL_BYTES });
  for await (const row of readRowsBack(found.path, beforeOffset ?? null, options)) {
    if ("bad" in row) badCount += 1;
    else rows.push(row);
    if (rows.length < wanted) continue;
    const page = await pageOf(format, found, { ...wants, rows, isWhole: false });
    if (page !== null) return { ...page, badCount };
    wanted *= 2;
  }
  const page = await pageOf(format, found, { ...wants, rows, isWhole: true });
  return { entries: [], beforeOffset: null, ...page, badCount };
}

interface Gathered {
  readonly rows: readonly Row[];
  readonly entriesMax: number;
  readonly textMax: number | undefined;
  readonly isWhole: boolean;
  readonly isLast: boolean;
}

/** Returns the last entries of these rows, or null if they are too few. Entries of one row stay together. */
async function pageOf<Notes>(
  format: RowFormat<Notes>,
  found: FoundSession,
  { rows, entriesMax, textMax, isWhole, isLast }: Gathered,
): Promise<Omit<TailPage, "badCount"> | null> {
  const fold = newFold(format, found, textMax ?? TEXT_MAX);
  const inOrder = rows.toReversed();
  const starts: { offset: number; entry: number }[] = [];
  const places: Places = new Map();
  if (!isWhole) format.gap?.(fold);
  for (const row of inOrder) {
    const entry = fold.entries.length;
    fold.heldFrom = null;
    foldAll(format, fold, [row]);
    for (let at = entry; at < fold.entries.length; at += 1) {
      fold.entries[at] = { ...(fold.entries[at] as HistoryEntry), offset: row.offset };
    }
    onceEach(fold.entries, entry, places);
    if (fold.entries.length > entry || fold.heldFrom !== null) {
      starts.push({ offset: fold.heldFrom ?? row.offset, entry });
    }
  }
  if (!isLast) {
    const entry = fold.entries.length;
    fold.heldFrom = null;
    format.endPage?.(fold);
    if (fold.entries.length > entry && fold.heldFrom !== null) starts.push({ offset: fold.heldFrom, entry });
  }
  const count = fold.entries.length;
  if (count < entriesMax && !isWhole) return null;
  const from = starts.findIndex(({ entry }) => count - entry <= entriesMax);
  // A page must contain all rows of an entry, so it may have to begin at an earlier row.
  const startOffset = starts.slice(from).reduce((least, { offset }) => Math.min(least, offset), Infinity);
  const start = starts.find(({ offset }) => offset >= startOffset);
  // The first row may continue an entry from an earlier row. Null makes the caller collect more rows.
  if (!isWhole && start?.offset === inOrder[0]?.offset) return null;
  await format.foldSidecars?.(fold, { isLast: true });
  const isAll = isWhole && (start === undefined || start.entry === 0);
  return {
    entries: fold.entries.slice(start?.entry ?? 0),
    beforeOffset: isAll ? null : (start?.offset ?? null),
  };
}

function foldAll<Notes>(format: RowFormat<Notes>, fold: Fold<Notes>, rows: readonly Row[]): BadLine[] {
  const refused: BadLine[] = [];
  for (const row of rows) {
    try {
      format.foldRow(fold, row);
    } catch (error) {
      const reason = `not understood: ${(error as Error).message}`;
      refused.push({ line: row.line, byteOffset: row.offset, reason });
    }
  }
  return refused;
}

/** The index of each entry in a list, by `inlineId` and ref. */
type Places = Map<string, number>;

/** Merges an entry with its rewritten versions in the same batch. */
function takenOnce(entries: HistoryEntry[]): HistoryEntry[] {
  if (entries.some(({ replaces }) => replaces !== undefined)) onceEach(entries, 0, new Map());
  return entries;
}

/** Merges entries with the same ref into one, which has the last text and the position of the first. */
function onceEach(entries: HistoryEntry[], from: number, places: Places): void {
  let end = from;
  for (const entry of entries.slice(from)) {
    const name = `${entry.inlineId ?? ""} ${entry.replaces ?? entry.ref}`;
    const place = places.get(name);
    if (place === undefined) {
      places.set(name, end);
      entries[end] = entry;
      end += 1;
      continue;
    }
    const { replaces: _, ...again } = entry;
    const first = entries[place] as HistoryEntry;
    entries[place] = first.replaces === undefined ? { ...again, ref: first.ref } : entry;
  }
  entries.length = end;
}

function newFold<Notes>(format: RowFormat<Notes>, found: FoundSession, textMax: number): Fold<Notes> {
  const empty = { entries: [], leftBehind: [], inline: new Map(), heldFrom: null };
  return { found, ...format.begin(found), ...empty, textMax };
}

/** Copies the state, because folding changes it and the caller's state must stay the same. */
function foldFrom<Notes>(state: ReadState, found: FoundSession, textMax: number): Fold<Notes> {
  const { facts, inline, notes } = structuredClone(state);
  const own = { facts, inline: new Map(Object.entries(inline)), notes: notes as Notes };
  return { found, ...own, entries: [], leftBehind: [], textMax, heldFrom: null };
}

function stateOf<Notes>(format: RowFormat<Notes>, fold: Fold<Notes>, position: LinePosition): ReadState {
  const { facts, notes } = structuredClone({ facts: fold.facts, notes: fold.notes });
  const inline = Object.fromEntries(structuredClone(fold.inline));
  return { version: format.version, position, facts, inline, notes };
}

function lineOptions<Notes>(format: RowFormat<Notes>, options: ReadOptions) {
  return {
    lineBytesMax: options.lineBytesMax ?? LINE_BYTES_MAX,
    chunkBytes: options.chunkBytes ?? CHUNK_BYTES,
    signal: options.signal,
    ...(format.open === undefined ? {} : { open: format.open }),
  };
}
