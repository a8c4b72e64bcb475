import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { Refusal } from "../../contract/refusal.ts";
import { markRestored } from "./epoch.ts";
import { translated } from "./failure.ts";

/**
 * A consistent copy in one file, made beside the running store. It appears under its name only
 * when it is whole, and carries the mark that makes whoever opens it mint a new epoch.
 */
export async function backUp(path: string, target: string): Promise<{ bytes: number }> {
  if (existsSync(target)) {
    throw new Refusal("invalid_input", `${target} exists already; name a file that does not.`);
  }
  const part = `${target}.part`;
  rmSync(part, { force: true });
  const source = new DatabaseSync(path, { readOnly: true });
  try {
    closeSync(openSync(part, "w", 0o600));
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

function finish(part: string): void {
  const copy = new DatabaseSync(part);
  copy.exec("PRAGMA journal_mode = DELETE");
  markRestored(copy);
  copy.close();
  chmodSync(part, 0o600);
  const file = openSync(part, "r");
  fsyncSync(file);
  closeSync(file);
}
