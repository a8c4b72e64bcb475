import type { Dirent, Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { HistoryFormat, Problem } from "../port.ts";

export interface Scan {
  readonly format: HistoryFormat;
  readonly root: string;
  readonly onProblem: (problem: Problem) => void;
  readonly keys: Set<string>;
}

export function newScan(
  format: HistoryFormat,
  root: string,
  onProblem: (problem: Problem) => void = () => undefined,
): Scan {
  return { format, root, onProblem, keys: new Set() };
}

/** Sorted by name, because `newKey` depends on the order of files. A missing folder gives an empty list. */
export async function listFolder(scan: Scan, folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR")
      scan.onProblem({ format: scan.format, path: folder, reason: message });
    return [];
  }
}

/** Reports a skipped transcript-like file, because a user may wonder why it is missing. */
export function reportForeignFile(scan: Scan, folder: string, { name }: Dirent): void {
  if (!TRANSCRIPT.test(name)) return;
  const reason = "it is not named like a session of this agent, so it is not read";
  scan.onProblem({ format: scan.format, path: join(folder, name), reason });
}

const TRANSCRIPT = /\.jsonl?(?:\.zst)?$/iu;

/** Follows symbolic links, because people move these folders elsewhere and leave a link behind. */
export async function isFolder(folder: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  // A dangling link is not a folder.
  const target = await stat(join(folder, entry.name)).catch(() => null);
  return target?.isDirectory() ?? false;
}

/** Returns the file's stats. If the path is not a readable file, reports it and returns null. */
export async function statFile({ format, onProblem }: Scan, path: string): Promise<Stats | null> {
  try {
    const file = await stat(path);
    if (!file.isFile()) throw new Error("it is not a file");
    return file;
  } catch (error) {
    onProblem({ format, path, reason: (error as Error).message });
    return null;
  }
}

export async function foldersIn(scan: Scan, folder: string): Promise<string[]> {
  const entries = await listFolder(scan, folder);
  const are = await Promise.all(entries.map((entry) => isFolder(folder, entry)));
  return entries.filter((_, index) => are[index]).map(({ name }) => join(folder, name));
}

/** Returns an unused key. If another file has the same id (a copied session), adds the path to the key. */
export function newKey(scan: Scan, id: string, path: string): string {
  const key = `${scan.format}:${id}`;
  const own = scan.keys.has(key) ? `${key}@${path.slice(scan.root.length + 1)}` : key;
  scan.keys.add(own);
  return own;
}
