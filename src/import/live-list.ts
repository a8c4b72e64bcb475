import { stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { LiveSession, ProcessProbe } from "../history/port.ts";
import type { Knowledge, Member } from "./catalog.ts";
import { type Context, GROWN_MS, type Reading, seenWorking } from "./context.ts";
import type { CurrentTasks, ImportTask } from "./thread/current-tasks.ts";
import { judgeFamily, type JudgeInput, type Verdict } from "./judge.ts";

const LEAST_MS = 100;
/** File timestamps are coarse: a file's time may be this much earlier than the write. */
const TICK_MS = 10;
/** Grace period after a write: until it is over, a missing process does not mean the session has stopped. */
const RECENT_MS = 5 * 60_000;
/** How long a file's growth counts as work if the agent lists its processes, but none for the session. */
const UNLISTED_MS = 2 * 60_000;

interface Listed {
  /** When reading the list began: a process that wrote later may be missing from it. */
  readonly at: number;
  readonly sessions: Promise<readonly LiveSession[]>;
}

interface LiveSetup {
  readonly probe: ProcessProbe;
  readonly freshMs: number;
  readonly tasks: CurrentTasks;
  readonly isSetAside: (task: ImportTask) => boolean;
}

/** Caches the agents' own lists of live sessions and limits how often they are read. */
export class LiveList {
  readonly #setup: LiveSetup;
  readonly #kept = new Map<string, Listed>();
  readonly #next = new Map<string, Promise<readonly LiveSession[]>>();

  constructor(setup: LiveSetup) {
    this.#setup = setup;
  }

  /** Reads the list again if it is stale, or if it is older than the last write and lacks the session. */
  async of(
    reading: Reading,
    about: { rootId: string; writtenAt: number } | null = null,
  ): Promise<readonly LiveSession[]> {
    const kept = this.#kept.get(reading.reader.format);
    if (kept === undefined || Date.now() - kept.at >= this.#setup.freshMs) return this.#ask(reading);
    const listed = await kept.sessions;
    if (about === null || kept.at > about.writtenAt + TICK_MS || isAmong(listed, about.rootId)) return listed;
    return this.#ask(reading);
  }

  /** Returns the time of the last list if the session is not in it; null if it is, or if there is no list. */
  async absentSince(format: string, rootId: string): Promise<number | null> {
    const kept = this.#kept.get(format);
    return kept === undefined || isAmong(await kept.sessions, rootId) ? null : kept.at;
  }

  #ask(reading: Reading): Promise<readonly LiveSession[]> {
    const { format } = reading.reader;
    const waitMs = (this.#kept.get(format)?.at ?? 0) + LEAST_MS - Date.now();
    if (waitMs <= 0) return this.#begin(reading);
    const next = this.#next.get(format) ?? delay(waitMs).then(() => this.#begin(reading));
    this.#next.set(format, next);
    return next;
  }

  #begin({ reader, roots }: Reading): Promise<readonly LiveSession[]> {
    const { probe, tasks, isSetAside } = this.#setup;
    this.#next.delete(reader.format);
    const asking = roots.map((root) => {
      const task = { format: reader.format, path: root, key: null, stamp: null };
      return isSetAside(task) ? [] : tasks.run(task, () => reader.live(root, probe));
    });
    const sessions = Promise.all(asking).then((lists) => lists.flat());
    this.#kept.set(reader.format, { at: Date.now(), sessions });
    return sessions;
  }
}

interface FamilyAsked {
  readonly familyKey: string;
  readonly known: ReadonlyMap<string, Knowledge>;
}

export async function judgeNow(
  context: Context,
  asked: FamilyAsked & { reading: Reading },
): Promise<Map<string, Verdict>> {
  const { familyKey, known, reading } = asked;
  const liveness = await livenessIn(context, asked);
  const verdicts = judgeFamily({ reader: reading.reader, familyKey, known, ...liveness });
  doubt(context, { familyKey, known, verdicts });
  return verdicts;
}

/** Returns who works on a family, from its agent's list and from observed growth of its files. */
async function livenessIn(
  context: Context,
  { familyKey, known, reading }: FamilyAsked & { reading: Reading },
): Promise<Pick<JudgeInput, "listed" | "seenWorking" | "isRecent">> {
  const now = Date.now();
  const rootId = rootIdOf(context, { familyKey, known });
  const writtenAt = Math.min(now, writtenAtOf(context, familyKey));
  const listed = await context.live.of(reading, { rootId, writtenAt });
  if (isAmong(listed, rootId)) nowListed(context, familyKey);
  const unlisted = unlistedWriter(context, { familyKey, rootId, now });
  return {
    listed: unlisted === null ? listed : [...listed, unlisted],
    seenWorking: seenWorking(context, now),
    isRecent: now - writtenAt < RECENT_MS,
  };
}

/** Records that a file grew while we watched: a process is writing, whether its agent lists it or not. */
export async function noticeGrowth(
  context: Context,
  member: Member,
  at: { known: ReadonlyMap<string, Knowledge>; readBytes: number; reading: Reading },
): Promise<void> {
  const { familyKey, found, path } = member;
  const writtenAt = await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => Date.now(),
  );
  if (found !== null) member.found = { ...found, changedAt: Math.max(found.changedAt, writtenAt) };
  // At the first read, nobody has seen the file grow yet. Then only a recent write counts as growth.
  if (at.readBytes === 0 && Date.now() - writtenAt > GROWN_MS) return;
  const rootId = rootIdOf(context, { familyKey, known: at.known });
  const absentSince = await context.live.absentSince(at.reading.reader.format, rootId);
  const isUnlisted = at.readBytes > 0 && absentSince !== null && writtenAt > absentSince;
  context.grown.set(member.key, { at: Date.now(), isUnlisted });
}

/** Remembers verdicts that rest on a missing process, so that they are checked again for a while. */
function doubt(
  context: Context,
  { familyKey, known, verdicts }: FamilyAsked & { verdicts: ReadonlyMap<string, Verdict> },
): void {
  const isDoubtful = [...verdicts.values()].some(({ row: { judgement } }) => {
    const isCutOff = judgement.state === "interrupted" || judgement.state === "orphaned";
    return isCutOff && judgement.confidence === "likely";
  });
  const [some] = context.catalog.family(familyKey);
  if (!isDoubtful || some === undefined) {
    context.doubted.delete(familyKey);
    return;
  }
  const rootId = rootIdOf(context, { familyKey, known });
  const until = writtenAtOf(context, familyKey) + RECENT_MS;
  context.doubted.set(familyKey, { format: some.format, rootId, until });
}

/** Returns the doubted families whose process is listed now or whose grace period is over. */
export async function noLongerDoubted(context: Context): Promise<string[]> {
  const settled: string[] = [];
  const now = Date.now();
  for (const reading of context.readings) {
    const { format } = reading.reader;
    const doubted = [...context.doubted].filter(([, doubtful]) => doubtful.format === format);
    if (doubted.length === 0) continue;
    const listed = await context.live.of(reading);
    for (const [familyKey, { rootId, until }] of doubted) {
      if (now < until && !isAmong(listed, rootId)) continue;
      context.doubted.delete(familyKey);
      settled.push(familyKey);
    }
  }
  return settled;
}

/** Returns the id that the agent uses for the root session, even if that session's file is gone. */
function rootIdOf({ catalog }: Context, { familyKey, known }: FamilyAsked): string {
  const [some] = known.values();
  return catalog.members.get(familyKey)?.agentId ?? some?.facts.rootId ?? some?.facts.id ?? familyKey;
}

function writtenAtOf({ catalog }: Context, familyKey: string): number {
  return Math.max(0, ...catalog.family(familyKey).map(({ found }) => found?.changedAt ?? 0));
}

/** Called when the agent lists the family's process, which is then taken to be the writer of its files. */
function nowListed({ catalog, grown }: Context, familyKey: string): void {
  for (const { key } of catalog.family(familyKey)) {
    const growth = grown.get(key);
    if (growth?.isUnlisted === true) grown.set(key, { ...growth, isUnlisted: false });
  }
}

/** If files grew recently though no list names a process, returns a live session for the unknown writer. */
function unlistedWriter(
  { catalog, grown }: Context,
  { familyKey, rootId, now }: { familyKey: string; rootId: string; now: number },
): LiveSession | null {
  const isThere = catalog.family(familyKey).some(({ key }) => {
    const growth = grown.get(key);
    return growth?.isUnlisted === true && now - growth.at < UNLISTED_MS;
  });
  if (!isThere) return null;
  const how = "its files grow, though its agent lists no process for it";
  return { id: rootId, pid: 0, startedAt: null, alive: true, doing: null, how };
}

function isAmong(listed: readonly LiveSession[], rootId: string): boolean {
  return listed.some(({ id, alive }) => id === rootId && alive !== false);
}
