import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { HistoryFormat, Problem } from "../port.ts";

/** A look through an agent's folders. */
export interface Look {
  readonly format: HistoryFormat;
  readonly root: string;
  readonly onProblem: (problem: Problem) => void;
  /** Keys given so far. */
  readonly keys: Set<string>;
}

/** In a fixed order, so that keys do not depend on the file system. A folder that is not there holds nothing. */
export async function listFolder(look: Look, folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR")
      look.onProblem({ format: look.format, path: folder, reason: message });
    return [];
  }
}

/** A transcript by its ending that is called as this agent calls none: it is left alone, and somebody may miss it. */
export function tellForeign(look: Look, folder: string, { name }: Dirent): void {
  if (!TRANSCRIPT.test(name)) return;
  const reason = "it is not called like a session of this agent's, and is left alone";
  look.onProblem({ format: look.format, path: join(folder, name), reason });
}

const TRANSCRIPT = /\.jsonl?(?:\.zst)?$/iu;

/** Also through a link: people keep their things elsewhere. */
export async function isFolder(folder: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  // A link that leads nowhere is not a folder.
  const target = await stat(join(folder, entry.name)).catch(() => null);
  return target?.isDirectory() ?? false;
}

export async function foldersIn(look: Look, folder: string): Promise<string[]> {
  const entries = await listFolder(look, folder);
  const are = await Promise.all(entries.map((entry) => isFolder(folder, entry)));
  return entries.filter((_, index) => are[index]).map(({ name }) => join(folder, name));
}

/** The same id in a second place (a copy) is told apart by where it lies. */
export function newKey(look: Look, id: string, path: string): string {
  const key = `${look.format}:${id}`;
  const own = look.keys.has(key) ? `${key}@${path.slice(look.root.length + 1)}` : key;
  look.keys.add(own);
  return own;
}
