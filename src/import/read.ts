import { redact } from "../secrets/redact.ts";
import type { HistoryEntry, HistoryReader, LeftBehind, ReadBatch } from "../history/port.ts";
import type { HistoryRecord, ImportedEntry } from "../store/port/store.ts";
import { type Knowledge, type Member, recordChange, stateOf } from "./catalog.ts";
import type { Outbox } from "./thread/outbox.ts";
import type { PrefixFilter } from "./shared-prefix.ts";
import type { RewrittenFiles } from "./rewritten-file.ts";
import { leftBehindEntry, READ_TEXT_MAX, toEntry } from "./to-entry.ts";
import { redactFacts } from "./row.ts";
import { firstChars, folded } from "../text/fence.ts";

export interface ReadRequest {
  readonly member: Member;
  readonly reader: HistoryReader;
  readonly known: Knowledge | undefined;
  readonly isLive: boolean;
  readonly signal: AbortSignal;
  /** Returns the session of a sub-agent whose entries are in this file; creates it if there is none. */
  readonly inside: (agentId: string, batch: ReadBatch) => Promise<Member>;
  readonly rewritten: RewrittenFiles;
  /** Drops entries that another session already has; null unless this session continues another one. */
  readonly prefixFilter: PrefixFilter | null;
  readonly onBytes: (bytesRead: number) => void;
}

const ENTRIES_MAX = 160;
const BODY_BYTES_MAX = 256 * 1024;
/** The read position is saved each time this many bytes are read. After a crash, reading continues there. */
const KEEP_BYTES = 8 * 1024 * 1024;
const BAD_KEPT_MAX = 5;
/** Longer lines are skipped. A line is in memory twice, so this limit sets the peak memory of an import. */
const LINE_BYTES_MAX = 32 * 1024 * 1024;

/** Reads a file from the last position and sends the new entries to the store. */
export async function readMember(outbox: Outbox, request: ReadRequest): Promise<Knowledge | null> {
  const { member, reader, signal, known } = request;
  if (member.found === null) return null;
  const sender = new Sender(outbox, request);
  const state = known === undefined ? null : stateOf(known);
  let bad: Bad = known ?? NO_BAD;
  let last: ReadBatch | null = null;
  let keptAt = member.readBytes;
  for await (const batch of reader.read(member.found, state, {
    textMax: READ_TEXT_MAX,
    lineBytesMax: LINE_BYTES_MAX,
    signal,
  })) {
    last = batch;
    bad = badAfter(batch.reset ? NO_BAD : bad, batch);
    await sender.take(batch);
    request.onBytes(batch.bytesRead);
    member.readBytes = batch.bytesRead;
    if (batch.bytesRead - keptAt < KEEP_BYTES) continue;
    keptAt = batch.bytesRead;
    await keep(outbox, member, knowledgeAfter(batch, bad));
  }
  return last === null ? (known ?? null) : knowledgeAfter(last, bad);
}

type Bad = Pick<Knowledge, "bad" | "badCount">;
const NO_BAD: Bad = { bad: [], badCount: 0 };

/** Saves the read position; the store accepts it only if everything before it was stored. */
async function keep(outbox: Outbox, member: Member, known: Knowledge): Promise<void> {
  const record = { ...recordOf(known), readBytes: member.readBytes };
  await outbox.change([recordChange(member, record)]);
}

export function recordOf({ facts, inline, place, badCount, bad }: Knowledge) {
  const opaque = place as unknown as Record<string, unknown> | null;
  return {
    facts: { facts, inline },
    place: opaque,
    badCount,
    bad: [...bad],
  } satisfies Partial<HistoryRecord>;
}

/**
 * Counts bad lines and keeps the first few. If lines were too long to be read, one of them is always kept: it
 * shows that the session's state is unsure, because facts may be missing.
 */
function badAfter(before: Bad, batch: ReadBatch): Bad {
  const all = [...before.bad, ...batch.bad.map((line) => ({ ...line }))];
  const kept = all.slice(0, BAD_KEPT_MAX);
  const skipped = all.find(isSkipped);
  if (skipped !== undefined && !kept.includes(skipped)) kept.splice(-1, 1, skipped);
  return { badCount: before.badCount + batch.badCount, bad: kept };
}

/** Whether a line, or a row of a database, was too long to be read, so that its content is unknown. */
export function isSkipped({ reason }: { reason: string }): boolean {
  return /(?:^| )longer than \d/u.test(reason);
}

function knowledgeAfter(batch: ReadBatch, bad: Bad): Knowledge {
  const { facts, inline, version, position, notes } = batch.state();
  const inside = Object.entries(inline).map(([id, own]) => [id, redactFacts(own)] as const);
  return {
    facts: redactFacts(facts),
    inline: Object.fromEntries(inside),
    place: { version, position, notes },
    badCount: bad.badCount,
    bad: [...bad.bad],
  };
}

class Sender {
  readonly #outbox: Outbox;
  readonly #request: ReadRequest;
  readonly #recent = new Recent();

  constructor(outbox: Outbox, request: ReadRequest) {
    this.#outbox = outbox;
    this.#request = request;
  }

  async take(batch: ReadBatch): Promise<void> {
    const { member } = this.#request;
    const bySession = this.#inOrder(batch);
    if (batch.reset) this.#request.rewritten.begin(member.key);
    for (const [inlineId, entries] of bySession) {
      const target = inlineId === null ? member : await this.#request.inside(inlineId, batch);
      if (target.kind !== "imported") continue;
      const own = (inlineId === null ? this.#request.prefixFilter?.own(entries) : null) ?? entries;
      await this.#send(target, await this.#request.rewritten.withNotice(member.key, target, own));
    }
  }

  /** Groups entries by session. After a rewind, a notice about abandoned entries precedes the next entry. */
  #inOrder(batch: ReadBatch): Map<string | null, ImportedEntry[]> {
    const { entries, leftBehind } = batch;
    const bySession = new Map<string | null, ImportedEntry[]>();
    const of = (inlineId: string | null): ImportedEntry[] => {
      const known = bySession.get(inlineId) ?? [];
      bySession.set(inlineId, known);
      return known;
    };
    const open = new Set(leftBehind);
    for (const entry of entries) {
      const list = of(entry.inlineId);
      for (const left of open) {
        if (left.beforeRef !== entry.ref || left.inlineId !== entry.inlineId) continue;
        open.delete(left);
        const { isSubagent, at } = entry;
        list.push(leftBehindEntry(left, { isSubagent, at: Math.round(at), first: this.#recent.after(left) }));
      }
      list.push(toEntry(entry));
      this.#recent.add(entry);
    }
    if (open.size === 0) return bySession;
    const { facts } = batch.state();
    const at = Math.round(facts.lastAt ?? Date.now());
    for (const left of open) {
      const isSubagent = left.inlineId !== null || facts.isSubagent;
      of(left.inlineId).push(leftBehindEntry(left, { isSubagent, at, first: this.#recent.after(left) }));
    }
    return bySession;
  }

  async #send(member: Member, entries: readonly ImportedEntry[]): Promise<void> {
    const { no, sessionId, rootId, agentId, parentId, depth } = member;
    const { isLive } = this.#request;
    const lineage = { agentId, parentId, depth: depth ?? 0 };
    for (const slice of slicesOf(entries)) {
      await this.#outbox.append({ no, sessionId, rootId, entries: slice, isLive, lineage });
    }
  }
}

function* slicesOf(entries: readonly ImportedEntry[]): Generator<ImportedEntry[]> {
  let slice: ImportedEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    slice.push(entry);
    bytes += entry.body.length;
    if (slice.length < ENTRIES_MAX && bytes < BODY_BYTES_MAX) continue;
    yield slice;
    [slice, bytes] = [[], 0];
  }
  if (slice.length > 0) yield slice;
}

const RECENT_MAX = 512;
const WORDS_MAX = 60;
/** Characters kept of each entry: more than are shown, so that a secret across the cut is redacted whole. */
const LOOKED_AT_MAX = 600;

/** The beginnings of the last entries. A notice about a rewind quotes the first entry that it abandoned. */
class Recent {
  /** `words` is a buffer, because a substring would keep the whole string in memory. */
  readonly #entries: { ref: string; inlineId: string | null; words: Buffer }[] = [];

  add({ ref, inlineId, body }: HistoryEntry): void {
    this.#entries.push({ ref, inlineId, words: Buffer.from(body.text.slice(0, LOOKED_AT_MAX)) });
    if (this.#entries.length > RECENT_MAX * 2) this.#entries.splice(0, RECENT_MAX);
  }

  /** Returns the beginning of the first abandoned entry; null if it is not among the recent entries. */
  after({ afterRef, inlineId }: LeftBehind): string | null {
    const at = this.#entries.findLastIndex((entry) => entry.ref === afterRef && entry.inlineId === inlineId);
    if (at < 0) return null;
    const next = this.#entries.slice(at + 1).find((entry) => entry.inlineId === inlineId);
    return firstChars(folded(redact(next?.words.toString() ?? "")), WORDS_MAX).trim() || null;
  }
}
