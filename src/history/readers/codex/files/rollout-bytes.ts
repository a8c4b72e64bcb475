import { basename } from "node:path";
import { type ByteFile, openBytes } from "../../../lines/byte-file.ts";
import { basePath, closeAll, headOf, joinedBytes, type Stretch } from "./history-base.ts";
import { openZstd } from "./zstd-file.ts";

const SUFFIX = ".zst";
/** The maximum length of a chain of files that each continue another one. */
const BASES_MAX = 16;

/**
 * Opens a session's file, uncompressed. Codex compresses a file after a week, and unpacks it when the session
 * continues. This may happen at any moment, so whichever form exists is read. Both forms contain the same
 * bytes, so reading that stopped in one form can continue in the other.
 *
 * The file of a forked or rolled-back session may contain only the session's own rows, and name the part of
 * another file that comes before them. That part is inserted after the first line, which says whose session
 * it is.
 */
export async function openRollout(path: string): Promise<ByteFile> {
  const file = await openEither(path);
  const identity = basename(path.endsWith(SUFFIX) ? path.slice(0, -SUFFIX.length) : path);
  try {
    const stretches = await stretchesOf(path, file, new Set([identity]));
    const bases = new Set(stretches.map((stretch) => stretch.file)).size - 1;
    return joinedBytes(bases === 0 ? identity : `${identity}+${bases}`, stretches);
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function stretchesOf(path: string, file: ByteFile, seen: Set<string>): Promise<Stretch[]> {
  const whole: Stretch[] = [{ file, start: 0, end: null }];
  const head = await headOf(file);
  if (head === null || head.base === null || seen.size > BASES_MAX) return whole;
  const base = await basePath(path, head.base);
  if (base === null || seen.has(basename(base))) return whole;
  seen.add(basename(base));
  // If the base cannot be opened, the file is read without it.
  const other = await openEither(base).catch(() => null);
  if (other === null) return whole;
  const before = cutAt(await stretchesOf(base, other, seen), head.base.endOffset);
  if (!(await endsLine(other, head.base.endOffset))) {
    await closeAll(before);
    return whole;
  }
  return [{ file, start: 0, end: head.end }, ...before, { file, start: head.end, end: null }];
}

/** Cuts the last stretch so that it ends at `endOffset`, a byte offset in its file. */
function cutAt(stretches: readonly Stretch[], endOffset: number): Stretch[] {
  const own = stretches.at(-1) as Stretch;
  return [...stretches.slice(0, -1), { ...own, end: Math.max(own.start, endOffset) }];
}

async function endsLine(file: ByteFile, endOffset: number): Promise<boolean> {
  const last = Buffer.alloc(1);
  return (await file.read(last, endOffset - 1)) === 1 && last[0] === 10;
}

async function openEither(path: string): Promise<ByteFile> {
  const other = path.endsWith(SUFFIX) ? path.slice(0, -SUFFIX.length) : `${path}${SUFFIX}`;
  try {
    return await openOne(path);
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === "ENOENT";
    // If both fail, the first error is thrown, because it names the requested path.
    const file = isGone ? await openOne(other).catch(() => null) : null;
    if (file === null) throw error;
    return file;
  }
}

function openOne(path: string): Promise<ByteFile> {
  return path.endsWith(SUFFIX) ? openZstd(path) : openBytes(path);
}
