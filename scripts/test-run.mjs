// Plain JavaScript for Node 20. Watches one test run and cleans up after it, however it ends.
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** The environment variable that marks each process of a run. Daemons do not pass it to their agents. */
const MARK = "KIN_TEST_RUN";
/** A run in which no test ends for this long counts as stuck. */
const STILL_MS = 8 * 60_000;
/** How long the processes of a finished run may take to exit before they are killed. */
const GRACE_MS = 5_000;
const LOOK_MS = 5_000;

export class TestRun {
  constructor(slowness) {
    this.id = randomUUID();
    this.folder = mkdtempSync(join(tmpdir(), "kinfold-run-"));
    this.progressFile = join(this.folder, "progress");
    this.slowness = slowness;
    this.env = { [MARK]: this.id };
  }

  /**
   * Calls `giveUp` with a message when no test has ended for too long. Returns a function that stops the
   * watch.
   */
  watch(giveUp) {
    let size = 0;
    let movedAt = performance.now();
    const timer = setInterval(() => {
      const now = statSync(this.progressFile, { throwIfNoEntry: false })?.size ?? 0;
      if (now !== size) {
        [size, movedAt] = [now, performance.now()];
        return;
      }
      if (performance.now() - movedAt < STILL_MS * this.slowness()) return;
      clearInterval(timer);
      giveUp(`No test has ended for ${Math.round((performance.now() - movedAt) / 60_000)} minutes.`);
    }, LOOK_MS);
    return () => clearInterval(timer);
  }

  /** Kills every process of this run that is still alive, and its descendants. Returns what it killed. */
  async clean() {
    rmSync(this.folder, { recursive: true, force: true });
    if (process.platform !== "linux") return [];
    await this.#untilGone(GRACE_MS * this.slowness());
    const found = new Map();
    // A process that was started during one listing is found in the next.
    for (let look = 0; look < 20; look += 1) {
      const left = this.#processes();
      if (left.length === 0) break;
      for (const each of left) signal(each.pid, "SIGSTOP");
      for (const each of this.#processes()) {
        found.set(each.pid, each.command);
        signal(each.pid, "SIGKILL");
      }
      await pause(50);
    }
    return [...found].map(([pid, command]) => `${pid} ${command}`);
  }

  async #untilGone(timeoutMs) {
    const deadline = performance.now() + timeoutMs;
    while (this.#processes().length > 0 && performance.now() < deadline) await pause(100);
  }

  /** Returns the processes with the mark and all their descendants, even those without the mark. */
  #processes() {
    const rows = processTable();
    const chosen = new Set(rows.filter((row) => hasMark(row.pid, this.id)).map((row) => row.pid));
    let before = -1;
    while (chosen.size !== before) {
      before = chosen.size;
      for (const row of rows) if (chosen.has(row.parentPid)) chosen.add(row.pid);
    }
    chosen.delete(process.pid);
    return rows.filter((row) => chosen.has(row.pid));
  }
}

function processTable() {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const stat = readOrNull(`/proc/${name}/stat`);
    if (stat === null) return [];
    const [state, parentPid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z") return [];
    const command = (readOrNull(`/proc/${name}/cmdline`) ?? "").replaceAll("\0", " ").slice(0, 200);
    return [{ pid: Number(name), parentPid: Number(parentPid), command }];
  });
}

function hasMark(pid, id) {
  return (readOrNull(`/proc/${pid}/environ`) ?? "").includes(`${MARK}=${id}`);
}

/** Returns null for a process that has ended, or that we may not read. */
function readOrNull(path) {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(error.code)) return null;
    throw error;
  }
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
