import type { HistoryItem, HistoryPage } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { redactSlowly } from "../../secrets/redact-long.ts";
import type { FileRange, FoundSession, HistoryEntry, HistoryReader, ReadState } from "../../history/port.ts";
import type { HistoryRecord, SessionRecord } from "../../store/port/store.ts";
import { takeSteps } from "../../system/steps.ts";
import type { OperationDeps } from "../deps.ts";
import { entryPage } from "./entry-page.ts";

interface PageRequest {
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** Longer texts are cut and marked as cut. */
const TEXT_MAX = 64 * 1024;
/**
 * The most pages that one request reads to find a sub-agent's entries in the file of another agent. The
 * caller continues with the cursor.
 */
const PAGES_MAX = 20;

/** Reads a page of the agent's own file, backwards from its end or from the cursor, and redacts it. */
export async function pageOfFile(
  deps: OperationDeps,
  record: HistoryRecord,
  request: PageRequest & { readonly calls: Readonly<Record<string, readonly string[]>> },
): Promise<HistoryPage> {
  const host = record.hostKey === null ? record : await deps.store.read.history.byKey(record.hostKey);
  const readers = await deps.readers();
  const reader = readers.find(({ format }) => format === record.format);
  if (host === null || reader === undefined) return nothing("Nothing here reads this file any more.");
  const found = host.found as unknown as FoundSession;
  const inlineId = record.hostKey === null ? null : record.agentId;
  try {
    const { entries, before } = await gather(reader, found, { inlineId, ...request });
    const left = leftRanges(host, inlineId);
    const bodies = await takeSteps(redactSlowly(entries.map(({ body }) => body)));
    const items = entries.map((entry, i) =>
      itemOf({ ...entry, body: bodies[i]! }, { calls: request.calls, left }),
    );
    return { items, cursor: before === null ? null : String(before), problem: null };
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return nothing(error instanceof Error ? error.message : String(error));
  }
}

/** Reads a page from the store, for a session whose agent has no known file. */
export async function pageOfStore(
  deps: OperationDeps,
  session: SessionRecord,
  { cursor, limit }: PageRequest,
): Promise<HistoryPage> {
  const before = cursor === undefined ? {} : { before: offsetOf(cursor) };
  const rows = await entryPage(deps.store.read, session.id, { ...before, limit });
  const items = rows.map(({ index, author, kind, body, isSubagent, at }) => {
    return { ref: String(index), author, kind, body, isSubagent, at };
  });
  const first = rows[0]?.index ?? 0;
  return { items, cursor: first > 0 ? String(first) : null, problem: null };
}

async function gather(
  reader: HistoryReader,
  found: FoundSession,
  { inlineId, cursor, limit }: PageRequest & { inlineId: string | null },
): Promise<{ entries: HistoryEntry[]; before: number | null }> {
  const entries: HistoryEntry[] = [];
  let before = cursor === undefined ? null : offsetOf(cursor);
  for (let count = 0; count < PAGES_MAX; count += 1) {
    const page = await reader.tail(found, {
      entriesMax: limit,
      textMax: TEXT_MAX,
      ...(before === null ? {} : { beforeOffset: before }),
    });
    entries.unshift(...page.entries.filter((entry) => entry.inlineId === inlineId));
    before = page.beforeOffset;
    if (before === null || entries.length >= Math.min(limit, ENOUGH)) break;
  }
  return { entries, before };
}

const ENOUGH = 20;

/** Returns the byte ranges that a rewind has abandoned, in the part of the file that has been read so far. */
function leftRanges({ facts: known }: HistoryRecord, inlineId: string | null): readonly FileRange[] {
  const { facts, inline } = (known ?? {}) as Partial<Pick<ReadState, "facts" | "inline">>;
  return (inlineId === null ? facts : inline?.[inlineId])?.leftRanges ?? [];
}

function itemOf(
  entry: HistoryEntry,
  { calls, left }: { calls: Readonly<Record<string, readonly string[]>>; left: readonly FileRange[] },
): HistoryItem {
  const { ref, author, kind, body, isSubagent, at, offset } = entry;
  const agentIds = kind === "toolCall" && body.callId !== undefined ? calls[body.callId] : undefined;
  const isLeft = offset !== undefined && left.some(({ from, to }) => from <= offset && offset < to);
  const offPath = isLeft ? { offPath: true } : {};
  const item = { ref, author, kind, body, isSubagent, at, ...offPath };
  return agentIds === undefined ? item : { ...item, agentIds: [...agentIds] };
}

function offsetOf(cursor: string): number {
  const offset = Number(cursor);
  if (Number.isSafeInteger(offset) && offset >= 0) return offset;
  throw new Refusal("invalid_input", `"${cursor}" is not a cursor that this page gave.`);
}

function nothing(problem: string): HistoryPage {
  return { items: [], cursor: null, problem };
}
