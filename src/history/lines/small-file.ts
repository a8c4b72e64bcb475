import { openBytes, readFully } from "./byte-file.ts";
import { parsedObject } from "./parse-json.ts";
import type { JsonObject } from "./value.ts";

/** Reads the first bytes of a file as text. */
export async function readStart(
  path: string,
  bytesMax: number,
): Promise<{ text: string; sizeBytes: number }> {
  const file = await openBytes(path);
  try {
    const { sizeBytes } = file;
    const buffer = Buffer.alloc(Math.min(sizeBytes, bytesMax));
    return { text: buffer.toString("utf8", 0, await readFully(file, buffer, 0)), sizeBytes };
  } finally {
    await file.close();
  }
}

/** Returns null when the file is missing, unreadable or too large. */
export async function readSmall(path: string, bytesMax: number): Promise<string | null> {
  // Most sessions have no such file.
  const file = await openBytes(path).catch(() => null);
  if (file === null) return null;
  try {
    if (file.sizeBytes > bytesMax) return null;
    const buffer = Buffer.alloc(file.sizeBytes);
    return buffer.subarray(0, await readFully(file, buffer, 0)).toString("utf8");
  } catch {
    return null;
  } finally {
    await file.close();
  }
}

export async function readSmallObject(path: string, bytesMax = 1024 * 1024): Promise<JsonObject | null> {
  const text = await readSmall(path, bytesMax);
  return text === null ? null : parsedObject(text);
}
