import { constants } from "node:fs";
import { lstat, open, opendir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { isInside } from "../system/folder.ts";

/** Anyone who can write into a project decides what these files are, so each read has a limit. */
export const PROJECT_FILE_BYTES_MAX = 64 * 1024;
export const PROJECT_FILES_MAX = 100;
/** Entries of a folder that are looked at while searching for files. */
const ENTRIES_MAX = 1_000;

export type ProjectFile =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  /** It is there and is not read; `why` completes "It …". */
  | { readonly kind: "refused"; readonly why: string };

/**
 * Reads one file of a project. Reads nothing but a plain file of at most 64 KB that lies in the project:
 * no FIFO, device or socket, no link, and no file behind a folder that links out of the project.
 */
export async function readProjectFile(project: string, path: string): Promise<ProjectFile> {
  const file = join(project, path);
  // A FIFO without a writer would hold up a blocking open for ever, and a link could lead anywhere.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let handle;
  try {
    handle = await open(file, flags);
  } catch (error) {
    return notOpened(error as NodeJS.ErrnoException);
  }
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) return refused("is not a plain file");
    if (!(await liesIn(project, file, stat))) return refused("lies outside the project");
    if (stat.size > PROJECT_FILE_BYTES_MAX) return tooLarge;
    const room = Buffer.alloc(PROJECT_FILE_BYTES_MAX + 1);
    const read = await fill(handle, room);
    return read > PROJECT_FILE_BYTES_MAX ? tooLarge : { kind: "text", text: room.toString("utf8", 0, read) };
  } finally {
    await handle.close();
  }
}

/**
 * Names of the files in a folder of a project that end so, sorted, at most 100. Lists names only; a folder
 * that is a link, or is behind one that leaves the project, has none.
 */
export async function listProjectFiles(project: string, folder: string, ending: string): Promise<string[]> {
  const path = join(project, folder);
  try {
    const stat = await lstat(path);
    if (!stat.isDirectory() || !(await liesIn(project, path, stat))) return [];
    const names: string[] = [];
    let entries = 0;
    for await (const { name } of await opendir(path)) {
      if (name.endsWith(ending)) names.push(name);
      entries += 1;
      if (names.length >= PROJECT_FILES_MAX || entries >= ENTRIES_MAX) break;
    }
    return names.toSorted();
  } catch (error) {
    const answer = notOpened(error as NodeJS.ErrnoException);
    if (answer.kind === "missing" || answer.kind === "refused") return [];
    throw error;
  }
}

/** Whether what was opened is what lies at this path now, and that path leads nowhere out of the project. */
async function liesIn(project: string, path: string, opened: { dev: number; ino: number }): Promise<boolean> {
  const [top, real] = await Promise.all([realpath(project), realpath(path)]);
  if (real === top || !isInside(real, top)) return false;
  const now = await lstat(real);
  return now.dev === opened.dev && now.ino === opened.ino;
}

async function fill(handle: Awaited<ReturnType<typeof open>>, room: Buffer): Promise<number> {
  let used = 0;
  while (used < room.length) {
    const { bytesRead } = await handle.read(room, used, room.length - used, used);
    if (bytesRead === 0) break;
    used += bytesRead;
  }
  return used;
}

function notOpened(error: NodeJS.ErrnoException): ProjectFile {
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
      return { kind: "missing" };
    case "ELOOP":
      return refused("is a link");
    case "ENXIO":
      return refused("is not a plain file");
    case "EACCES":
    case "EPERM":
      return refused("may not be read by this user");
    default:
      throw error;
  }
}

function refused(why: string): ProjectFile {
  return { kind: "refused", why };
}

const tooLarge = refused("is larger than 64 KB");
