import { realpath } from "node:fs/promises";
import { join, relative } from "node:path";
import { readRows } from "../../lines/json-lines.ts";
import type { LiveSession, ProcessProbe } from "../../port.ts";
import { asObject, asText } from "../../lines/value.ts";
import { newScan } from "../../lines/folder.ts";
import { FORMAT, rolloutFiles } from "./files/layout.ts";
import { openRollout } from "./files/rollout-bytes.ts";

/**
 * Lists live sessions by their open files. Codex keeps no list of its processes, but each process holds its
 * sessions' files open until it exits, including the files of sub-agents. So a session whose file is open is
 * live, even if the file was last written long ago.
 */
export async function readLive(root: string, probe: ProcessProbe): Promise<LiveSession[]> {
  seesAll = (await probe.shows?.("codex")) ?? false;
  // A root that does not exist has no sessions.
  const real = await realpath(root).catch(() => null);
  if (real === null) return [];
  const files = await rolloutFiles(newScan(FORMAT, root));
  const plain = files.filter(({ isCompressed }) => !isCompressed);
  const byPath = new Map(plain.map((file) => [join(real, relative(root, file.folder), file.name), file]));
  const holders = await probe.holders(new Set(byPath.keys()));
  const live = [...holders].map(async ([path, pid]): Promise<LiveSession> => {
    const own = byPath.get(path)?.id ?? "";
    return {
      id: (await rootIdOf(path)) ?? own,
      pid,
      startedAt: probe.startedAt?.(pid) ?? null,
      alive: true,
      doing: null,
      how: `its process ${pid} holds its file open`,
    };
  });
  return Promise.all(live);
}

/** Whether all processes were visible when `readLive` was last called. */
let seesAll = false;

/**
 * Returns whether `readLive` could see every process that holds a file open. It cannot see processes in other
 * containers, or processes that we may not inspect.
 */
export function listsHolders(): boolean {
  return seesAll;
}

const HEAD_BYTES_MAX = 4 * 1024 * 1024;

/** Returns the id of the root session, which the file's first record names. */
async function rootIdOf(path: string): Promise<string | null> {
  const options = { lineBytesMax: HEAD_BYTES_MAX, chunkBytes: 64 * 1024, open: openRollout };
  try {
    for await (const { rows, position } of readRows(path, null, options)) {
      const meta = asObject(rows[0]?.value["payload"]);
      if (meta !== null) return asText(meta["session_id"])?.toLowerCase() ?? null;
      if (position.offset > HEAD_BYTES_MAX) return null;
    }
    return null;
  } catch {
    return null;
  }
}
