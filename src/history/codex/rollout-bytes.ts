import { basename } from "node:path";
import { type ByteFile, openBytes } from "../byte-file.ts";
import { openZstd } from "./zstd-file.ts";

const SUFFIX = ".zst";

/**
 * The bytes of a session's file, unpacked where it is compressed. The agent packs what has lain for a
 * week, and unpacks it to go on with it, at any moment: whichever form is there is read. Both hold the
 * same bytes, so where reading stopped in one it goes on in the other; that the content is still the
 * same is proven by the bytes before that place.
 */
export async function openRollout(path: string): Promise<ByteFile> {
  const isPacked = path.endsWith(SUFFIX);
  const other = isPacked ? path.slice(0, -SUFFIX.length) : `${path}${SUFFIX}`;
  const file = await openOne(path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return openOne(other).catch(() => {
      throw error;
    });
  });
  const identity = basename(isPacked ? other : path);
  return { identity, sizeBytes: file.sizeBytes, read: file.read, close: file.close };
}

function openOne(path: string): Promise<ByteFile> {
  return path.endsWith(SUFFIX) ? openZstd(path) : openBytes(path);
}
