import path from "node:path";
import type { HistoryScan } from "../contract/index.ts";
import { isAtWork } from "../domain/imported.ts";
import type { FoundSession, HistoryReader, ReadState, SessionFacts } from "../history/port.ts";
import type { HistoryKnown, HistoryRecord } from "../store/port/store.ts";
import type { ThreadRpc } from "../system/thread-rpc.ts";
import type { Counted, Reading } from "./context.ts";
import type { MemberChange, StoreSide } from "./thread/protocol.ts";

/** A session or sub-agent on disk, without its contents. */
export interface Member extends HistoryKnown {
  /** What the last scan found; null before a scan, and for a sub-agent inside another session's file. */
  found: FoundSession | null;
  /** Excluded after it was imported: the imported part stays, but nothing more is read. */
  isLeftOut: boolean;
}

/** Everything learned from reading a member's file, and the position reached. */
export interface Knowledge {
  facts: SessionFacts;
  inline: Readonly<Record<string, SessionFacts>>;
  place: Pick<ReadState, "version" | "position" | "notes"> | null;
  badCount: number;
  bad: NonNullable<HistoryRecord["bad"]>;
}

const PAGE = 500;
/** Records per page. Records are large, so pages are small, and other requests do not wait long. */
const FAMILY_PAGE = 32;
/** Families whose knowledge is cached; the least recently used one is evicted first. */
const FAMILIES_MAX = 24;

export class Catalog {
  readonly members = new Map<string, Member>();
  readonly #families = new Map<string, Set<string>>();
  readonly #byAgentId = new Map<string, Set<string>>();
  readonly #byPath = new Map<string, Set<string>>();
  readonly #folders = new Set<string>();
  readonly #known = new Map<string, Promise<Map<string, Knowledge>>>();
  readonly #busy = new Map<string, Promise<unknown>>();
  readonly #rpc: ThreadRpc<StoreSide>;
  /** Whether anything was imported before this thread started. */
  hadSome = false;

  constructor(rpc: ThreadRpc<StoreSide>) {
    this.#rpc = rpc;
  }

  async load(): Promise<void> {
    for (let after = 0; ;) {
      const page = await this.#rpc.ask("known", { after, limit: PAGE });
      for (const known of page) this.put({ ...known, found: null, isLeftOut: false });
      after = page.at(-1)?.no ?? after;
      this.hadSome ||= page.length > 0;
      if (page.length < PAGE) return;
    }
  }

  put(member: Member): void {
    this.members.set(member.key, member);
    addTo(this.#families, member.familyKey, member.key);
    addTo(this.#byAgentId, `${member.format} ${member.agentId}`, member.key);
    if (member.hostKey === null) this.#indexPath(member);
  }

  #indexPath(member: Member): void {
    addTo(this.#byPath, member.path, member.key);
    this.#folders.add(path.dirname(member.path));
  }

  isFolder(folder: string): boolean {
    return this.#folders.has(folder);
  }

  move(member: Member, file: string): void {
    this.#byPath.get(member.path)?.delete(member.key);
    member.path = file;
    this.#indexPath(member);
  }

  drop(key: string): void {
    const member = this.members.get(key);
    if (member === undefined) return;
    this.members.delete(key);
    this.#families.get(member.familyKey)?.delete(key);
    this.#byAgentId.get(`${member.format} ${member.agentId}`)?.delete(key);
    this.#byPath.get(member.path)?.delete(key);
    this.forget(member.familyKey);
  }

  regroup(member: Member, familyKey: string): void {
    this.#families.get(member.familyKey)?.delete(member.key);
    this.forget(member.familyKey);
    this.forget(familyKey);
    member.familyKey = familyKey;
    addTo(this.#families, familyKey, member.key);
  }

  family(familyKey: string): Member[] {
    return this.#all(this.#families.get(familyKey));
  }

  byAgentId(format: string, agentId: string): Member[] {
    return this.#all(this.#byAgentId.get(`${format} ${agentId}`));
  }

  byPath(file: string): Member[] {
    return this.#all(this.#byPath.get(file));
  }

  paths(): Iterable<string> {
    return this.#byPath.keys();
  }

  #all(keys: ReadonlySet<string> | undefined): Member[] {
    return [...(keys ?? [])].flatMap((key) => this.members.get(key) ?? []);
  }

  /** The caller may change the returned map. Changes last until the family is forgotten or evicted. */
  knowledge(familyKey: string): Promise<Map<string, Knowledge>> {
    const kept = this.#known.get(familyKey);
    const loading = kept ?? this.#read(familyKey);
    this.#known.delete(familyKey);
    this.#known.set(familyKey, loading);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= FAMILIES_MAX) break;
      if (this.#busy.has(oldest)) break;
      this.#known.delete(oldest);
    }
    return loading;
  }

  forget(familyKey: string): void {
    this.#known.delete(familyKey);
  }

  /** Runs one piece of work at a time for each family. */
  alone<T>(familyKey: string, work: () => Promise<T>): Promise<T> {
    const before = this.#busy.get(familyKey) ?? Promise.resolve();
    const own = before.then(work, work);
    // The caller gets the error through `own`. The next piece of work only waits until this one has ended.
    const done = own
      .catch(() => undefined)
      .finally(() => {
        if (this.#busy.get(familyKey) === done) this.#busy.delete(familyKey);
      });
    this.#busy.set(familyKey, done);
    return own;
  }

  async #read(familyKey: string): Promise<Map<string, Knowledge>> {
    const known = new Map<string, Knowledge>();
    for (let after = 0; ;) {
      const page = await this.#rpc.ask("family", { familyKey, after, limit: FAMILY_PAGE });
      for (const record of page) if (record.facts !== null) known.set(record.key, knowledgeOf(record));
      after = page.at(-1)?.no ?? after;
      if (page.length < FAMILY_PAGE) return known;
    }
  }
}

function knowledgeOf(record: Pick<HistoryRecord, "facts" | "place" | "badCount" | "bad">): Knowledge {
  const { facts, inline } = record.facts as unknown as Pick<Knowledge, "facts" | "inline">;
  const place = record.place as unknown as Knowledge["place"];
  return { facts, inline, place, badCount: record.badCount, bad: record.bad ?? [] };
}

export function stateOf({ facts, inline, place }: Knowledge): ReadState | null {
  return place === null ? null : { ...place, facts, inline };
}

export function countAll(catalog: Catalog, readings: readonly Reading[]): Counted {
  const counted = { excluded: 0, files: 0, filesRead: 0, bytes: 0, bytesRead: 0 };
  const found = new Map(
    readings.map(({ reader, roots }) => [reader.format as string, newCount(reader, roots)]),
  );
  for (const member of catalog.members.values()) {
    if (member.goneAt !== null) continue;
    if (member.kind === "excluded" || member.isLeftOut) counted.excluded += 1;
    if (!isKept(member)) continue;
    if (member.hostKey === null) {
      counted.files += 1;
      counted.bytes += member.sizeBytes;
      const isRead = member.isLeftOut || member.readStamp === member.stamp;
      counted.filesRead += isRead ? 1 : 0;
      counted.bytesRead += isRead ? member.sizeBytes : Math.min(member.readBytes, member.sizeBytes);
    }
    const count = found.get(member.format);
    if (member.kind !== "imported" || count === undefined) continue;
    count[isBelow(member) ? "subagents" : "sessions"] += 1;
    const state = (member.state ?? "unknown") as keyof typeof count.states;
    count.states[state] = (count.states[state] ?? 0) + 1;
  }
  return { ...counted, found: [...found.values()].filter((each) => each.sessions + each.subagents > 0) };
}

function newCount({ agent, format }: HistoryReader, roots: readonly string[]): HistoryScan["found"][number] {
  return { agent, format, roots: [...roots], sessions: 0, subagents: 0, states: {} };
}

function isBelow({ hostKey, found, familyKey, key }: Member): boolean {
  return hostKey !== null || found?.isSubagent === true || familyKey !== key;
}

export function isFollowed(member: Member): boolean {
  return isKept(member) && !member.isLeftOut;
}

export function isKept({ kind }: Member): boolean {
  return kind === "imported" || kind === "ours";
}

export function storedFields(member: Member) {
  const { key, agentId, format, path: file, familyKey, hostKey, sessionId } = member;
  const { rootId, kind, stamp, sizeBytes } = member;
  return { key, agentId, format, path: file, familyKey, hostKey, sessionId, rootId, kind, stamp, sizeBytes };
}

export function recordChange({ no, rootId }: Member, record: MemberChange["record"]): MemberChange {
  return { no, rootId, record, session: null };
}

export function isOpen(member: Member): boolean {
  return member.state !== null && isAtWork(member.state);
}

function addTo(map: Map<string, Set<string>>, key: string, value: string): void {
  const values = map.get(key) ?? new Set();
  map.set(key, values.add(value));
}
