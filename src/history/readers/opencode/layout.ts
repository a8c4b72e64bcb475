import { stat } from "node:fs/promises";
import { basename, isAbsolute, join } from "node:path";
import { foldersIn, listFolder, type Scan, newKey, newScan } from "../../lines/folder.ts";
import type { FoundSession, UserHome } from "../../port.ts";
import { readSmallObject } from "../../lines/byte-file.ts";
import { asNumber, asObject, type JsonObject } from "../../lines/value.ts";
import { sessionsIn } from "./sessions.ts";
import { treeSession } from "./tree-source.ts";

export const FORMAT = "opencode";

/** Returns the data folder and, if `OPENCODE_DB` is set, the database that it names. */
export function roots({ home, env }: UserHome): string[] {
  const data = join(env["XDG_DATA_HOME"] || join(home, ".local/share"), "opencode");
  const named = env["OPENCODE_DB"];
  if (!named || named === ":memory:") return [data];
  return [data, isAbsolute(named) ? named : join(data, named)];
}

export interface Extra extends Readonly<Record<string, string | number | boolean | null>> {
  readonly kind: "database" | "tree";
  /** The rowid at which the session was last found. */
  readonly rowid: number | null;
  readonly rootId: string;
}

/**
 * Finds every session in a folder's databases (one for each release channel of OpenCode). Then finds the
 * sessions that are only in the older tree of files, because they were not migrated into a database. Reads no
 * message content.
 */
export async function* discover(scan: Scan): AsyncGenerator<FoundSession> {
  const ids = new Set<string>();
  for (const path of await databasesIn(scan.root)) {
    try {
      const found = await inDatabase(scan, path);
      for (const one of found) {
        ids.add(one.id);
        yield one;
      }
    } catch (error) {
      scan.onProblem({ format: FORMAT, path, reason: (error as Error).message });
    }
  }
  yield* inTree(scan, join(scan.root, "storage"), ids);
}

/** The root itself may be a database. */
export async function databasesIn(root: string): Promise<string[]> {
  // A root that does not exist holds no database.
  const file = await stat(root).catch(() => null);
  if (file?.isFile()) return [root];
  const names = (await listFolder(newScan(FORMAT, root), root)).map(({ name }) => name);
  return names.filter((name) => /^opencode(-[^/]+)?\.db$/u.test(name)).map((name) => join(root, name));
}

async function inDatabase(scan: Scan, path: string): Promise<FoundSession[]> {
  const { size } = await stat(path);
  const seen = await sessionsIn(path);
  const total = [...seen.values()].reduce((sum, { count }) => sum + count, 0);
  return [...seen.values()].map((one) => ({
    ...foundOf(scan, { ...one, path }, { kind: "database", rowid: one.rowid, rootId: topOf(one, seen) }),
    key: newKey(scan, one.id, `${path}/${one.id}`),
    sizeBytes: total === 0 ? 0 : Math.round((size * one.count) / total),
    changedAt: one.updatedAt,
    stamp: [one.updatedAt, one.count, one.lastId, one.parts].join(":"),
  }));
}

function foundOf(
  { root }: Scan,
  { id, path, parentId }: { id: string; path: string; parentId: string | null },
  extra: Extra,
): Omit<FoundSession, "key" | "sizeBytes" | "changedAt" | "stamp"> {
  const rootKey = `${FORMAT}:${extra.rootId}`;
  return { format: FORMAT, root, path, id, rootKey, isSubagent: parentId !== null, extra };
}

/** Follows the known parents and returns the topmost id. Stops where the parents form a cycle. */
export function topOf(
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
  scan: Scan,
  storage: string,
  known: ReadonlySet<string>,
): AsyncGenerator<FoundSession> {
  const sessions = new Map<string, TreeSession>();
  for (const project of await foldersIn(scan, join(storage, "session"))) {
    for (const { name } of await listFolder(scan, project)) {
      const id = basename(name, ".json");
      if (!/^ses_.*\.json$/u.test(name) || known.has(id) || sessions.has(id)) continue;
      const path = join(project, name);
      const record = await readSmallObject(path);
      if (record === null) scan.onProblem({ format: FORMAT, path, reason: "it is not a session" });
      else sessions.set(id, { id, path, record, parentId: treeSession(record, id).parentId });
    }
  }
  for (const one of sessions.values()) {
    yield {
      ...foundOf(scan, one, { kind: "tree", rowid: null, rootId: topOf(one, sessions) }),
      key: newKey(scan, one.id, one.path),
      ...(await datesOf(one, join(storage, "message", one.id))),
    };
  }
}

interface TreeSession {
  readonly id: string;
  readonly path: string;
  readonly parentId: string | null;
  readonly record: JsonObject;
}

/** Every message adds a file to the session's folder, so the folder's modification time shows it. */
async function datesOf(
  { path, record }: TreeSession,
  messages: string,
): Promise<Pick<FoundSession, "sizeBytes" | "changedAt" | "stamp">> {
  // A session without messages has no folder for them.
  const [file, folder] = await Promise.all([path, messages].map((one) => stat(one).catch(() => null)));
  const updatedAt = asNumber(asObject(record["time"])?.["updated"]) ?? 0;
  const times = [file?.mtimeMs ?? 0, folder?.mtimeMs ?? 0];
  return {
    sizeBytes: file?.size ?? 0,
    changedAt: updatedAt || Math.max(...times),
    stamp: [file?.ino, file?.size, ...times].join(":"),
  };
}
