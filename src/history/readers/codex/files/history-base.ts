import { basename, dirname, join } from "node:path";
import { type ByteFile, readFully } from "../../../lines/byte-file.ts";
import { asNumber, asObject, asText } from "../../../lines/value.ts";
import { newScan } from "../../../lines/folder.ts";
import { fileOf, FOLDERS, FORMAT, type RolloutFile, rolloutFiles } from "./layout.ts";
import { timeIn } from "../copied.ts";
import { readdir } from "node:fs/promises";
import { parsedObject } from "../../../lines/parse-json.ts";

/** The part of another file, up to `endOffset`, that a session continues. */
export interface HistoryBase {
  readonly rolloutId: string;
  readonly endOffset: number;
}

export interface Head {
  readonly end: number;
  readonly base: HistoryBase | null;
}

const HEAD_BYTES_MAX = 8 * 1024 * 1024;
const STEP_BYTES = 64 * 1024;

export async function headOf(file: ByteFile): Promise<Head | null> {
  let head = Buffer.alloc(0);
  while (head.length < HEAD_BYTES_MAX) {
    const step = Buffer.alloc(STEP_BYTES);
    const count = await readFully(file, step, head.length);
    const at = step.subarray(0, count).indexOf(10);
    if (at >= 0) {
      const line = Buffer.concat([head, step.subarray(0, at)]);
      return { end: line.length + 1, base: baseIn(line) };
    }
    if (count < STEP_BYTES) return null;
    head = Buffer.concat([head, step]);
  }
  return null;
}

function baseIn(line: Buffer): HistoryBase | null {
  if (!line.includes('"history_base"')) return null;
  const payload = asObject(parsedObject(line.toString("utf8"))?.["payload"]);
  const base = asObject(payload?.["history_base"]);
  const rolloutId = asText(base?.["thread_id"])?.toLowerCase() ?? null;
  const endOffset = asNumber(base?.["end_byte_offset"]);
  if (rolloutId === null || endOffset === null || !Number.isSafeInteger(endOffset) || endOffset <= 0)
    return null;
  return { rolloutId, endOffset };
}

/** Finds the file with this id below the same root; null when it is gone. */
export async function basePath(path: string, { rolloutId }: HistoryBase): Promise<string | null> {
  const root = rootOf(path);
  if (root === null) return null;
  const isIt = (file: RolloutFile | null): file is RolloutFile => file?.rolloutId === rolloutId;
  for (const folder of likelyFolders(root, rolloutId)) {
    // A likely folder may not exist. If no likely folder has the file, all folders are searched afterwards.
    const names = await readdir(folder).catch((): string[] => []);
    const found = names.map((name) => fileOf(folder, name, false)).find(isIt);
    if (found !== undefined) return join(found.folder, found.name);
  }
  const found = (await rolloutFiles(newScan(FORMAT, root))).find(isIt);
  return found === undefined ? null : join(found.folder, found.name);
}

/** A file's folder has its local start date. The id has the UTC time, so the date may differ by one day. */
function likelyFolders(root: string, rolloutId: string): string[] {
  const time = timeIn(rolloutId);
  if (time === null) return [];
  return [0, -1, 1].map((days) => {
    const day = new Date(time + days * 86_400_000).toISOString().slice(0, 10);
    return join(root, FOLDERS[0], ...day.split("-"));
  });
}

function rootOf(path: string): string | null {
  let folder = dirname(path);
  for (let depth = 0; depth < 8 && dirname(folder) !== folder; depth += 1) {
    if (FOLDERS.includes(basename(folder))) return dirname(folder);
    folder = dirname(folder);
  }
  return null;
}

export interface Stretch {
  readonly file: ByteFile;
  readonly start: number;
  /** Where this range of bytes ends; null for the end of the file, which only the last range may have. */
  readonly end: number | null;
}

/** Presents ranges of several files as one file. */
export function joinedBytes(identity: string, stretches: readonly Stretch[]): ByteFile {
  const lengthOf = ({ file, start, end }: Stretch): number => Math.max(0, (end ?? file.sizeBytes) - start);
  return {
    identity,
    sizeBytes: stretches.reduce((sum, stretch) => sum + lengthOf(stretch), 0),
    async read(into, offset) {
      let begin = 0;
      for (const stretch of stretches) {
        const at = offset - begin;
        const left = stretch.end === null ? Number.POSITIVE_INFINITY : lengthOf(stretch) - at;
        if (left > 0) {
          const part = into.subarray(0, Math.min(into.length, left));
          return stretch.file.read(part, stretch.start + at);
        }
        begin += lengthOf(stretch);
      }
      return 0;
    },
    close: () => closeAll(stretches),
  };
}

/** Closes each file once, because several stretches may belong to the same file. */
export async function closeAll(stretches: readonly Stretch[]): Promise<void> {
  await Promise.all([...new Set(stretches.map(({ file }) => file))].map((file) => file.close()));
}
