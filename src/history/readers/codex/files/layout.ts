import { join } from "node:path";
import { foldersIn, listFolder, type Scan, reportForeignFile, statFile } from "../../../lines/folder.ts";
import type { FoundSession, UserHome } from "../../../port.ts";
import type { Extra } from "../notes.ts";
import { type Indexed, readIndexes } from "./indexes.ts";

export const FORMAT = "codex";

export function roots({ home, env }: UserHome): string[] {
  return [env["CODEX_HOME"] || join(home, ".codex")];
}

/** One file of a session, which may have several: see `discover`. */
export interface RolloutFile {
  readonly folder: string;
  readonly name: string;
  readonly id: string;
  /** The file's own id. After a rollback to an earlier point it differs from the session's id. */
  readonly rolloutId: string;
  readonly isCompressed: boolean;
  readonly isArchived: boolean;
}

const NAME =
  /^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([\da-z-]{8,64})(?:_([\da-z-]{8,64}))?\.jsonl(\.zst)?$/iu;
export const FOLDERS: readonly [string, string] = ["sessions", "archived_sessions"];
/** Levels of folders: year, month and day, and one more for hosts with another layout. */
const DEPTH_MAX = 4;

/**
 * Finds every session below `sessions` and `archived_sessions`, and yields one file for each. If a session
 * has a plain and a compressed file, the plain one is used: Codex unpacks a session before continuing it, so
 * the plain file is newer. A session that was rolled back to an earlier point has several files, and the
 * newest is used. That file records how much of the older file it continues.
 */
export async function* discover(scan: Scan): AsyncGenerator<FoundSession> {
  const files = await rolloutFiles(scan);
  if (files.length === 0) return;
  const indexed = await readIndexes(scan.root);
  const current = new Map<string, RolloutFile>();
  for (const file of files) {
    const other = current.get(file.id);
    if (other === undefined || isBetter(file, other)) current.set(file.id, file);
  }
  for (const file of current.values()) {
    const found = await foundOf(scan, file, indexed);
    if (found !== null) yield found;
  }
}

/** Returns all files below a root that are named like a session's file, in a fixed order. */
export async function rolloutFiles(scan: Scan): Promise<RolloutFile[]> {
  const files: RolloutFile[] = [];
  const visit = async (folder: string, depthMax: number, isArchived: boolean): Promise<void> => {
    for (const entry of await listFolder(scan, folder)) {
      const file = fileOf(folder, entry.name, isArchived);
      if (file !== null) files.push(file);
      else reportForeignFile(scan, folder, entry);
    }
    if (depthMax === 0) return;
    for (const inside of await foldersIn(scan, folder)) {
      if (!NAME.test(inside.slice(folder.length + 1))) await visit(inside, depthMax - 1, isArchived);
    }
  };
  for (const [index, name] of FOLDERS.entries()) await visit(join(scan.root, name), DEPTH_MAX, index === 1);
  return files;
}

export function fileOf(folder: string, name: string, isArchived: boolean): RolloutFile | null {
  const parts = NAME.exec(name);
  if (parts === null) return null;
  const id = (parts[1] as string).toLowerCase();
  const rolloutId = (parts[2] ?? id).toLowerCase();
  return { folder, name, id, rolloutId, isCompressed: parts[3] !== undefined, isArchived };
}

function isBetter(file: RolloutFile, other: RolloutFile): boolean {
  if (file.rolloutId !== other.rolloutId) return file.name > other.name;
  if (file.isCompressed !== other.isCompressed) return !file.isCompressed;
  return !file.isArchived && other.isArchived;
}

async function foundOf(
  scan: Scan,
  { folder, name, id }: RolloutFile,
  indexed: Indexed,
): Promise<FoundSession | null> {
  const path = join(folder, name);
  const file = await statFile(scan, path);
  if (file === null) return null;
  const known = indexed(id);
  const { title, closed, parentId } = known;
  const extra: Extra = { title, closed, parentId, ownFromOrdinal: null, ownFromOffset: null, path: null };
  return {
    format: FORMAT,
    key: keyOf(id),
    root: scan.root,
    path,
    id,
    rootKey: known.rootId === null ? null : keyOf(known.rootId),
    isSubagent: known.isSubagent,
    sizeBytes: file.size,
    changedAt: file.mtimeMs,
    // Compression keeps the modification time. The stamp changes anyway, as the name then ends in `.zst`.
    stamp: [name.slice(-4), file.ino, file.size, file.mtimeMs, closed, parentId, title].join(":"),
    extra,
  };
}

function keyOf(id: string): string {
  return `${FORMAT}:${id}`;
}
