import { stat } from "node:fs/promises";
import { basename, isAbsolute, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { foldersIn, listFolder, type Look, newKey } from "../folder.ts";
import type { FoundSession, Place, Problem } from "../port.ts";
import { readSmallObject } from "../small-file.ts";
import { type Database, type NamedRow, openDatabase } from "../sqlite/database.ts";
import { asNumber, asObject } from "../value.ts";
import { sessionOf, tablesOf } from "./database-source.ts";
import { treeSession } from "./tree-source.ts";

export const FORMAT = "opencode";

/** The data folder, and a database that the environment names. */
export function roots({ home, env }: Place): string[] {
  const data = join(env["XDG_DATA_HOME"] || join(home, ".local/share"), "opencode");
  const named = env["OPENCODE_DB"];
  if (!named || named === ":memory:") return [data];
  return [data, isAbsolute(named) ? named : join(data, named)];
}

/** What the reader has to find again of a session. */
export interface Extra extends Readonly<Record<string, string | number | boolean | null>> {
  readonly kind: "database" | "tree";
  /** Where its row was. */
  readonly rowid: number | null;
  readonly rootId: string;
}

/**
 * Every session in the databases of a folder (one for each channel the agent is published in), then those
 * of the tree of files before it, unless they were taken over into a database. No message is looked into.
 */
export async function* discover(
  root: string,
  onProblem: (problem: Problem) => void,
): AsyncGenerator<FoundSession> {
  const look: Look = { format: FORMAT, root, onProblem, keys: new Set() };
  const ids = new Set<string>();
  for (const path of await databasesIn(root)) {
    try {
      const found = await inDatabase(look, path);
      for (const one of found) {
        ids.add(one.id);
        yield one;
      }
    } catch (error) {
      onProblem({ format: FORMAT, path, reason: (error as Error).message });
    }
  }
  yield* inTree(look, join(root, "storage"), ids);
}

/** The root itself may be a database. */
export async function databasesIn(root: string): Promise<string[]> {
  const file = await stat(root).catch(() => null);
  if (file?.isFile()) return [root];
  const look: Look = { format: FORMAT, root, onProblem: () => undefined, keys: new Set() };
  const names = (await listFolder(look, root)).map(({ name }) => name);
  return names.filter((name) => /^opencode(-[^/]+)?\.db$/u.test(name)).map((name) => join(root, name));
}

/** What is known of a session from its row and from the dates of its messages. */
export interface Seen {
  readonly id: string;
  readonly parentId: string | null;
  readonly rowid: number;
  updatedAt: number;
  count: number;
  /** The latest message, and when its parts were written as long as it is not finished. */
  lastId: string;
  last: NamedRow | null;
  parts: string;
}

const TRIES_MAX = 4;

async function inDatabase(look: Look, path: string): Promise<FoundSession[]> {
  const { size } = await stat(path);
  const seen = await withDatabase(path, sessionsIn);
  const total = [...seen.values()].reduce((sum, { count }) => sum + count, 0);
  return [...seen.values()].map((one): FoundSession => {
    const rootId = topOf(one, seen);
    const extra: Extra = { kind: "database", rowid: one.rowid, rootId };
    return {
      format: FORMAT,
      key: newKey(look, one.id, `${path}/${one.id}`),
      root: look.root,
      path,
      id: one.id,
      rootKey: `${FORMAT}:${rootId}`,
      isSubagent: one.parentId !== null,
      sizeBytes: total === 0 ? 0 : Math.round((size * one.count) / total),
      changedAt: one.updatedAt,
      stamp: [one.updatedAt, one.count, one.lastId, one.parts].join(":"),
      extra,
    };
  });
}

/** Looks again when the agent wrote meanwhile, because what was seen may then not belong together. */
export async function withDatabase<T>(path: string, look: (database: Database) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const database = openDatabase(path);
    try {
      const found = await look(database);
      if (database.isStill() || tries >= TRIES_MAX) return found;
    } catch (error) {
      if (database.isStill() || tries >= TRIES_MAX) throw error;
    } finally {
      database.close();
    }
  }
}

/** One look at every row, in steps, so that a large database does not hold up the rest. */
export async function sessionsIn(database: Database): Promise<Map<string, Seen>> {
  const { session, message, part } = tablesOf(database);
  const seen = new Map<string, Seen>();
  for (const row of session.rows()) {
    const { id, parentId } = sessionOf(row);
    if (id === "") continue;
    const updatedAt = row.number("time_updated") ?? row.number("time_created") ?? 0;
    seen.set(id, { id, parentId, rowid: row.rowid, updatedAt, count: 0, lastId: "", last: null, parts: "" });
  }
  let count = 0;
  for (const row of message.rows()) {
    count += 1;
    if (count % ROWS_AT_ONCE === 0) await setImmediate();
    const one = seen.get(row.text("session_id") ?? "");
    const id = row.text("id") ?? "";
    if (one === undefined) continue;
    one.count += 1;
    one.updatedAt = Math.max(one.updatedAt, row.number("time_updated") ?? row.number("time_created") ?? 0);
    if (id > one.lastId) [one.lastId, one.last] = [id, row];
  }
  for (const one of seen.values()) {
    if (one.last === null || isFinished(one.last)) continue;
    one.parts = stampOf(part.where("message_id", one.lastId));
    await setImmediate();
  }
  return seen;
}

const ROWS_AT_ONCE = 2000;
const LOOKED_AT_BYTES_MAX = 1024 * 1024;

/** A finished answer gets no more parts. */
function isFinished(row: NamedRow): boolean {
  return row.bytes("data") <= LOOKED_AT_BYTES_MAX && (row.text("data") ?? "").includes('"completed":');
}

function stampOf(parts: Iterable<NamedRow>): string {
  let [count, updatedAt] = [0, 0];
  for (const row of parts) {
    count += 1;
    updatedAt = Math.max(updatedAt, row.number("time_updated") ?? 0);
  }
  return `${count}/${updatedAt}`;
}

/** The id at the top, as far as parents are known; a chain that comes round ends where it began. */
function topOf(
  { id, parentId }: { id: string; parentId: string | null },
  seen: ReadonlyMap<string, { readonly parentId: string | null }>,
): string {
  const passed = new Set([id]);
  let top = id;
  for (
    let above = parentId;
    above !== null && !passed.has(above);
    above = seen.get(above)?.parentId ?? null
  ) {
    passed.add(above);
    top = above;
  }
  return top;
}

async function* inTree(
  look: Look,
  storage: string,
  known: ReadonlySet<string>,
): AsyncGenerator<FoundSession> {
  const sessions = new Map<string, { id: string; parentId: string | null; path: string }>();
  for (const project of await foldersIn(look, join(storage, "session"))) {
    for (const { name } of await listFolder(look, project)) {
      const id = basename(name, ".json");
      if (!/^ses_.*\.json$/u.test(name) || known.has(id) || sessions.has(id)) continue;
      const path = join(project, name);
      const record = await readSmallObject(path);
      if (record === null) look.onProblem({ format: FORMAT, path, reason: "it is not a session" });
      else sessions.set(id, { id, path, parentId: treeSession(record, id).parentId });
    }
  }
  for (const one of sessions.values()) {
    const rootId = topOf(one, sessions);
    const extra: Extra = { kind: "tree", rowid: null, rootId };
    yield {
      format: FORMAT,
      key: newKey(look, one.id, one.path),
      root: look.root,
      path: one.path,
      id: one.id,
      rootKey: `${FORMAT}:${rootId}`,
      isSubagent: one.parentId !== null,
      ...(await datesOf(one.path, join(storage, "message", one.id))),
      extra,
    };
  }
}

/** Every message makes a file in the session's folder. */
async function datesOf(
  path: string,
  messages: string,
): Promise<Pick<FoundSession, "sizeBytes" | "changedAt" | "stamp">> {
  const [file, folder] = await Promise.all([path, messages].map((one) => stat(one).catch(() => null)));
  const record = await readSmallObject(path);
  const updatedAt = asNumber(asObject(record?.["time"])?.["updated"]) ?? 0;
  const times = [file?.mtimeMs ?? 0, folder?.mtimeMs ?? 0];
  return {
    sizeBytes: file?.size ?? 0,
    changedAt: updatedAt || Math.max(...times),
    stamp: [file?.ino, file?.size, ...times].join(":"),
  };
}
