import { chmodSync, closeSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { errorCode } from "../../system/error.ts";
import { Refusal } from "../../contract/refusal.ts";
import { markRestored, syncFile } from "./epoch.ts";
import { translated } from "./failure.ts";

/**
 * Makes a consistent copy in one file while the store runs. The copy gets its final name only when it is
 * complete. It is marked as a copy, so that it gets a new epoch when it is opened.
 */
export async function backUp(path: string, target: string): Promise<{ bytes: number }> {
  const part = `${target}.part`;
  refuseBadTarget(target, part);
  const source = new DatabaseSync(path, { readOnly: true });
  try {
    await backup(source, part, { rate: 1_000 });
    finish(part);
    renameSync(part, target);
    return { bytes: statSync(target).size };
  } catch (error) {
    for (const left of [part, `${part}-wal`, `${part}-shm`]) rmSync(left, { force: true });
    throw translated(error, target);
  } finally {
    source.close();
  }
}

/** Refuses an unusable target before copying. Creates `part` as an empty file readable only by its owner. */
function refuseBadTarget(target: string, part: string): void {
  try {
    const found = statSync(target, { throwIfNoEntry: false });
    if (found?.isDirectory()) throw badTarget(`${target} is a folder; name a file in it.`);
    if (found !== undefined) throw badTarget(`${target} exists already; name a file that does not.`);
    rmSync(part, { force: true });
    closeSync(openSync(part, "w", 0o600));
  } catch (error) {
    const why = WHY[errorCode(error)];
    throw why === undefined ? error : badTarget(`${target} cannot be written: ${why}.`);
  }
}

function badTarget(text: string): Refusal {
  return new Refusal("invalid_input", text, { field: "path" });
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: "its folder does not exist",
  ENOTDIR: "a part of the path is not a folder",
  EACCES: "the daemon may not write there",
  EPERM: "the daemon may not write there",
  EROFS: "the file system is read-only",
  ENAMETOOLONG: "the name is too long",
  ELOOP: "its links lead in a circle",
  EISDIR: "a folder is in the way",
  ERR_FS_EISDIR: "a folder is in the way",
};

function finish(part: string): void {
  const copy = new DatabaseSync(part);
  markRestored(copy);
  copy.close();
  chmodSync(part, 0o600);
  syncFile(part);
}
