import { stat } from "node:fs/promises";
import { noFacts } from "../history/facts.ts";
import type { FoundSession, HistoryReader, SessionFacts } from "../history/port.ts";
import { asError } from "../system/error.ts";
import { isInside } from "../system/folder.ts";
import { isFollowed, type Member, recordChange } from "./catalog.ts";
import type { Context, Reading } from "./context.ts";
import { isExcluded } from "./excluded.ts";
import { addFound, type Discovery } from "./add-found.ts";
import type { MemberChange, OwnSession } from "./thread/protocol.ts";
import { whySetAside } from "./thread/restarts.ts";
import { redactFacts } from "./row.ts";
import { slices } from "./slice.ts";

const GLANCES_MAX = 16;

/**
 * Compares all files with the catalog. Adds new sessions, and calls `take` with the members that have
 * something new to read. Lists each agent's files separately, so that one slow database does not delay the
 * others.
 */
export async function scan(
  context: Context,
  take: (unread: readonly Member[]) => void,
): Promise<{ foundMs: number }> {
  leaveOut(context);
  context.progress.problems = [];
  context.progress.scan.problemCount = 0;
  const looks = context.readings.map(async (reading) => {
    const { unread, foundMs } = await scanReading(context, reading);
    if (!context.signal.aborted) take(unread);
    return foundMs;
  });
  return { foundMs: Math.max(0, ...(await Promise.all(looks))) };
}

async function scanReading(
  context: Context,
  reading: Reading,
): Promise<{ unread: Member[]; foundMs: number }> {
  const from = performance.now();
  const seen = new Set<string>();
  const changes: MemberChange[] = [];
  const unread: Member[] = [];
  const fresh: { found: FoundSession; reading: Reading }[] = [];
  const unreadable = await findAll(context, reading, (found) => {
    if (seen.has(found.key)) return;
    seen.add(found.key);
    const member = context.catalog.members.get(found.key);
    if (member === undefined || isToBeGlanced(context, member, found)) fresh.push({ found, reading });
    else if (notice(context, member, { found, changes })) unread.push(member);
  });
  if (unreadable !== null)
    await noticeGone(context, { format: reading.reader.format, seen, unreadable }, changes);
  const foundMs = performance.now() - from;
  for (const slice of slices(changes, 50)) await context.rpc.ask("change", slice);
  return { unread: [...unread, ...(await takeNew(context, fresh))], foundMs };
}

/** Scans only the folders that these files belong to. `isEnough` is false if a file needs a full scan. */
export async function scanNear(
  context: Context,
  files: Iterable<string>,
): Promise<{ unread: Member[]; isEnough: boolean }> {
  const { folders, isEnough } = foldersNear(context, files);
  const changes: MemberChange[] = [];
  const unread: Member[] = [];
  const fresh: { found: FoundSession; reading: Reading }[] = [];
  for (const { reading, root, folder } of folders) {
    const task = { format: reading.reader.format, path: root, key: null, stamp: null };
    if (whySetAside(context.setAside, task) !== null) continue;
    const inFolder = await context.tasks.run(task, () =>
      Array.fromAsync(reading.reader.discover(root, () => undefined, folder)),
    );
    for (const found of inFolder) {
      const member = context.catalog.members.get(found.key);
      // A session at a new path was moved or copied. Only a full scan sees both paths and can distinguish the
      // two.
      if (member !== undefined && member.path !== found.path) continue;
      if (member === undefined || isToBeGlanced(context, member, found)) fresh.push({ found, reading });
      else if (notice(context, member, { found, changes })) unread.push(member);
    }
  }
  for (const slice of slices(changes, 50)) await context.rpc.ask("change", slice);
  return { unread: [...unread, ...(await takeNew(context, fresh))], isEnough };
}

function foldersNear({ readings }: Context, files: Iterable<string>) {
  const folders = new Map<string, { reading: Reading; root: string; folder: string }>();
  let isEnough = true;
  for (const file of files) {
    for (const reading of readings) {
      const root = reading.roots.find((each) => file !== each && isInside(file, each));
      if (root === undefined) continue;
      const folder = reading.reader.near?.(root, file);
      if (folder === undefined) isEnough = false;
      else if (folder !== null) folders.set(folder, { reading, root, folder });
    }
  }
  return { folders: [...folders.values()], isEnough };
}

/** Returns paths with a problem; null if a root was not listed, so that no missing file is marked as gone. */
async function findAll(
  { progress, signal, tasks, setAside }: Context,
  { reader, roots }: Reading,
  take: (found: FoundSession) => void,
): Promise<ReadonlySet<string> | null> {
  const { format } = reader;
  const unreadable = new Set<string>();
  let isComplete = true;
  const problem = (file: string, reason: string): void => {
    unreadable.add(file);
    progress.problem({ format, path: file, reason, badLines: 0 });
  };
  for (const root of roots) {
    if (signal.aborted) return null;
    const task = { format, path: root, key: null, stamp: null };
    const reason = whySetAside(setAside, task);
    if (reason !== null) {
      isComplete = false;
      problem(root, reason);
      continue;
    }
    await tasks.run(task, async () => {
      for await (const found of reader.discover(root, (each) => problem(each.path, each.reason))) take(found);
    });
  }
  return isComplete ? unreadable : null;
}

/** Excluded sessions are examined again when the exclusions change, empty ones when they have grown. */
function isToBeGlanced({ rechecksExcluded }: Context, { kind, stamp }: Member, found: FoundSession): boolean {
  return (rechecksExcluded && kind === "excluded") || (kind === "empty" && stamp !== found.stamp);
}

/** Updates a known member; returns whether its file may have something new to read. */
function notice(
  context: Context,
  member: Member,
  { found, changes }: { found: FoundSession; changes: MemberChange[] },
): boolean {
  const isChanged = member.stamp !== found.stamp || member.path !== found.path || member.goneAt !== null;
  if (member.path !== found.path) context.catalog.move(member, found.path);
  Object.assign(member, { found, stamp: found.stamp, sizeBytes: found.sizeBytes, goneAt: null });
  if (isChanged) {
    const { path: file, stamp, sizeBytes } = found;
    const changedAt = Math.round(found.changedAt);
    const plain = found as unknown as Record<string, unknown>;
    const record = { found: plain, path: file, stamp, sizeBytes, changedAt, goneAt: null };
    changes.push(recordChange(member, record));
  }
  return isFollowed(member) && member.readStamp !== found.stamp;
}

/** A session stays when its file is gone: it is only marked as gone. */
async function noticeGone(
  context: Context,
  { format, seen, unreadable }: { format: string; seen: Set<string>; unreadable: ReadonlySet<string> },
  changes: MemberChange[],
): Promise<void> {
  const goneAt = Date.now();
  for (const member of context.catalog.members.values()) {
    if (member.format !== format || unreadable.has(member.path)) continue;
    if (member.hostKey !== null || member.goneAt !== null || seen.has(member.key)) continue;
    const isThere = await stat(member.path).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== "ENOENT" && error.code !== "ENOTDIR",
    );
    // An existing file proves that its session exists only if the file has one session. A database has many
    // and outlives them.
    if (isThere && context.catalog.byPath(member.path).length === 1) continue;
    member.goneAt = goneAt;
    changes.push(recordChange(member, { goneAt }));
  }
}

async function takeNew(
  context: Context,
  fresh: readonly { found: FoundSession; reading: Reading }[],
): Promise<Member[]> {
  const glanced: Discovery[] = [];
  for (const slice of slices(fresh, GLANCES_MAX)) {
    if (context.signal.aborted) return [];
    const looks = await Promise.all(slice.map((each) => lookInto(context, each)));
    glanced.push(...looks.filter((each) => each !== null));
  }
  await context.sharedPrefixes.note(context, glanced);
  const own = await ownSessions(context, glanced);
  for (const discovery of glanced) discovery.familyKey = familyKeyOf(context, discovery, glanced);
  const added: Member[] = [];
  const families = Map.groupBy(glanced, ({ familyKey }) => familyKey);
  for (const [familyKey, discoveries] of families) {
    if (context.signal.aborted) break;
    const adding = () => addFound(context, { familyKey, discoveries, own });
    try {
      added.push(...(await context.catalog.alone(familyKey, adding)));
    } catch (error) {
      // Forgets these sessions, so that the next scan tries them again. The other families are still added.
      for (const { found } of discoveries) context.catalog.drop(found.key);
      context.progress.scan.error = asError(error).message;
    }
  }
  return added;
}

/** Returns null when the reader failed: the next scan tries again. */
async function lookInto(
  { progress, tasks, setAside }: Context,
  { found, reading }: { found: FoundSession; reading: Reading },
): Promise<Discovery | null> {
  const { reader } = reading;
  const own = { found, reading, familyKey: found.key };
  const reason = whySetAside(setAside, found);
  if (reason !== null) return { ...own, facts: noFacts(found.id), problem: reason, isEmpty: true };
  try {
    return await tasks.run(found, async () => {
      const { facts, problem } = await reader.glance(found);
      const isEmpty = facts.createdAt === null && facts.messageCount === 0 && facts.ending.kind === "empty";
      const why = isEmpty && problem === null ? await whyEmpty(reader, found) : problem;
      return { ...own, facts: redactFacts(facts), problem: why, isEmpty };
    });
  } catch (error) {
    const { format, path } = found;
    progress.problem({ format, path, reason: asError(error).message, badLines: 0 });
    return null;
  }
}

/** Returns why a file is not a session file; null if it may be a session file without entries yet. */
async function whyEmpty(reader: HistoryReader, found: FoundSession): Promise<string | null> {
  const nothing = `nothing in it is a session of ${reader.agent}`;
  for await (const { bad, badCount, bytesRead } of reader.read(found, null)) {
    const [first] = bad;
    if (badCount > 0 && first !== undefined) {
      return `${nothing}: ${first.line === null ? "it" : `line ${first.line}`} ${first.reason}`;
    }
    if (bytesRead === 0 && found.sizeBytes > 0) return `${nothing}: it has no complete line`;
    return null;
  }
  return null;
}

/** Finds which files belong to managed or attached sessions, whose agents write files too. */
async function ownSessions(
  context: Context,
  discoveries: readonly Discovery[],
): Promise<Map<string, OwnSession>> {
  const own = new Map<string, OwnSession>();
  for (const { reader } of context.readings) {
    const ids = new Set<string>();
    for (const { found, facts } of discoveries.filter((each) => each.found.format === reader.format)) {
      if (!found.isSubagent) ids.add(found.id);
      if (facts.rootId !== null) ids.add(facts.rootId);
    }
    for (const slice of slices([...ids], 500)) {
      const known = await context.rpc.ask("ours", { agent: reader.agent, ids: slice });
      for (const each of known) own.set(`${reader.format} ${each.agentSessionId}`, each);
    }
  }
  return own;
}

/** Returns the key of the root session, or a name for a family whose root is gone. */
function familyKeyOf(context: Context, discovery: Discovery, all: readonly Discovery[]): string {
  const { found, facts } = discovery;
  if (!found.isSubagent && !facts.isSubagent) return found.key;
  if (found.rootKey !== null) return found.rootKey;
  const seen = new Set<string>([found.key]);
  for (let at: SessionFacts | null = facts; at !== null;) {
    const top = byId(context, all, { format: found.format, id: at.rootId });
    if (top !== null && !top.isSubagent) return top.familyKey;
    const parent = byId(context, all, { format: found.format, id: at.parent?.id ?? null });
    if (parent === null || seen.has(parent.key)) break;
    if (parent.facts === null) return parent.familyKey;
    seen.add(parent.key);
    at = parent.facts;
  }
  return `gone:${found.format}:${facts.rootId ?? found.key}`;
}

interface Relative {
  readonly key: string;
  readonly familyKey: string;
  readonly isSubagent: boolean;
  /** Null for a session in the catalog, because its family is already known. */
  readonly facts: SessionFacts | null;
}

function byId(
  { catalog }: Context,
  all: readonly Discovery[],
  { format, id }: { format: string; id: string | null },
): Relative | null {
  if (id === null) return null;
  const [known] = catalog.byAgentId(format, id);
  if (known !== undefined) {
    const { key, familyKey } = known;
    return { key, familyKey, isSubagent: key !== familyKey, facts: null };
  }
  const fresh = all.find(({ found }) => found.format === format && found.id === id);
  if (fresh === undefined) return null;
  const { found, facts } = fresh;
  const isSubagent = found.isSubagent || facts.isSubagent;
  return { key: found.key, familyKey: found.key, isSubagent, facts };
}

/** Applies the current exclusions to sessions that were imported before. */
function leaveOut({ catalog, exclude, options }: Context): void {
  const known = new Map<string | null, boolean>();
  const isOut = (cwd: string | null): boolean => {
    const out = known.get(cwd) ?? isExcluded(cwd, exclude, options.userHome.home);
    known.set(cwd, out);
    return out;
  };
  for (const member of catalog.members.values()) {
    const top = catalog.members.get(member.familyKey);
    const isOurs = member.kind === "ours" || top?.kind === "ours";
    member.isLeftOut =
      !isOurs && member.kind === "imported" && (isOut(member.cwd) || isOut(top?.cwd ?? null));
  }
}
