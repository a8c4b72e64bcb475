import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";

/** Anyone may have written a project's files, and a home's may be anything by mistake: each read is limited. */
export const FILE_BYTES_MAX = 64 * 1024;

export type NotRead =
  | { readonly kind: "missing" }
  /** The file exists but was not read. `why` completes a sentence that begins with "It". */
  | { readonly kind: "refused"; readonly why: string };

export type FileBytes = { readonly kind: "bytes"; readonly bytes: Buffer } | NotRead;
export type FileText = { readonly kind: "text"; readonly text: string } | NotRead;

/**
 * Reads a text file of the person's own home, at most 64 KB of it. It may be a link, because people link their
 * settings from elsewhere. Never rejects: whatever prevents reading is `refused`.
 */
export async function readHomeText(file: string): Promise<FileText> {
  let handle;
  try {
    // Without O_NONBLOCK, opening a FIFO that has no writer would block forever.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return await explainNotOpened(file, error as NodeJS.ErrnoException);
  }
  try {
    return (await handle.stat()).isFile() ? textOf(await readCapped(handle)) : refused("is not a plain file");
  } catch (error) {
    return refused(`cannot be read: ${(error as Error).message}`);
  } finally {
    await handle.close();
  }
}

/** Looks at the size before it reads, and reads at most one byte too many, because the file may be growing. */
export async function readCapped(handle: FileHandle): Promise<FileBytes> {
  if ((await handle.stat()).size > FILE_BYTES_MAX) return tooLarge;
  const room = Buffer.alloc(FILE_BYTES_MAX + 1);
  const read = await fill(handle, room);
  return read > FILE_BYTES_MAX ? tooLarge : { kind: "bytes", bytes: room.subarray(0, read) };
}

export function textOf(read: FileBytes): FileText {
  if (read.kind !== "bytes") return read;
  if (!isUtf8(read.bytes)) return refused("is not UTF-8 text");
  return { kind: "text", text: read.bytes.toString("utf8").replace(/^\uFEFF/, "") };
}

export function refused(why: string): NotRead {
  return { kind: "refused", why };
}

const tooLarge = refused("is larger than 64 KB");

/** A file that was removed after its folder was listed is missing; a link that leads nowhere is refused. */
async function explainNotOpened(file: string, { code, message }: NodeJS.ErrnoException): Promise<NotRead> {
  switch (code) {
    case "ENOENT":
      return (await isLink(file)) ? refused("is a link to a file that does not exist") : { kind: "missing" };
    case "ELOOP":
      return refused("is a link that leads back to itself");
    case "ENXIO":
      return refused("is not a plain file");
    case "EACCES":
    case "EPERM":
      return refused("may not be read by this user");
    default:
      return refused(`cannot be read: ${message}`);
  }
}

async function isLink(file: string): Promise<boolean> {
  try {
    return (await lstat(file)).isSymbolicLink();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

async function fill(handle: FileHandle, room: Buffer): Promise<number> {
  let used = 0;
  while (used < room.length) {
    const { bytesRead } = await handle.read(room, used, room.length - used, used);
    if (bytesRead === 0) break;
    used += bytesRead;
  }
  return used;
}
