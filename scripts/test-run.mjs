// Plain JavaScript for Node 20. Watches one test run and cleans up after it, however it ends.
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/**
 * The environment variable that marks each process of a run. Its value is the run's id, then in a test process
 * and what it starts `:` and the test file. A run inside a test appends its own after a `;`. Daemons do not
 * pass it to their agents.
 */
export const MARK = "KIN_TEST_RUN";

/** Time limits for two idle cores. */
const LIMITS = {
  /** A run in which no test ends for this long counts as stuck. */
  stillMs: 8 * 60_000,
  /** How often the watch looks at the progress. */
  lookMs: 5_000,
  /** How long the processes of a finished run may take to exit before they are killed. */
  graceMs: 5_000,
};

export class TestRun {
  constructor(slowness, limits = {}) {
    const outer = process.env[MARK];
    this.id = outer === undefined ? randomUUID() : `${outer};${randomUUID()}`;
    this.folder = mkdtempSync(join(tmpdir(), "kinfold-run-"));
    this.resultsFile = join(this.folder, "results");
    this.slowness = slowness;
    this.limits = { ...LIMITS, ...limits };
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
      const now = statSync(this.resultsFile, { throwIfNoEntry: false })?.size ?? 0;
      if (now !== size) {
        [size, movedAt] = [now, performance.now()];
        return;
      }
      if (performance.now() - movedAt < this.limits.stillMs * this.slowness()) return;
      clearInterval(timer);
      giveUp(`No test has ended for ${Math.round((performance.now() - movedAt) / 60_000)} minutes.`);
    }, this.limits.lookMs);
    return () => clearInterval(timer);
  }

  /**
   * Kills every process of this run that is still alive, and its descendants. Returns what it killed, each with
   * the test file that it belongs to, or null if that is unknown.
   */
  async clean() {
    rmSync(this.folder, { recursive: true, force: true });
    if (process.platform !== "linux") return [];
    await this.#untilGone(this.limits.graceMs * this.slowness());
    const found = new Map();
    // A process that was started during one listing is found in the next.
    for (let look = 0; look < 20; look += 1) {
      const left = this.#processes();
      if (left.length === 0) break;
      for (const each of left) signal(each.pid, "SIGSTOP");
      for (const each of this.#processes()) {
        found.set(each.pid, each);
        signal(each.pid, "SIGKILL");
      }
      await pause(50);
    }
    return [...found.values()];
  }

  async #untilGone(timeoutMs) {
    const deadline = performance.now() + timeoutMs;
    while (this.#processes().length > 0 && performance.now() < deadline) await pause(100);
  }

  /** Returns the processes with the mark and all their descendants, even those without the mark. */
  #processes() {
    const rows = processTable();
    const files = new Map();
    for (const { pid } of rows) {
      const file = markedFile(pid, this.id);
      if (file !== undefined) files.set(pid, file);
    }
    let found;
    do {
      found = rows.filter(({ pid, parentPid }) => files.has(parentPid) && !files.has(pid));
      for (const { pid, parentPid } of found) files.set(pid, files.get(parentPid));
    } while (found.length > 0);
    files.delete(process.pid);
    return rows
      .filter(({ pid }) => files.has(pid))
      .map(({ pid, command }) => ({ pid, command, file: files.get(pid) }));
  }
}

/** Returns the mark with a test file, unless it already has one. */
export function withFile(mark, file) {
  return mark.slice(mark.lastIndexOf(";") + 1).includes(":") ? mark : `${mark}:${file}`;
}

/** Returns the test file in a process's mark, null if it has the mark without one, else undefined. */
function markedFile(pid, id) {
  const environment = readOrNull(`/proc/${pid}/environ`) ?? "";
  const mark = environment.split("\0").find((entry) => entry.startsWith(`${MARK}=${id}`));
  if (mark === undefined) return undefined;
  const [own] = mark.slice(`${MARK}=${id}`.length).split(";");
  return own.startsWith(":") ? own.slice(1) : null;
}

function processTable() {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const stat = readOrNull(`/proc/${name}/stat`);
    if (stat === null) return [];
    const [state, parentPid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z") return [];
    const command = (readOrNull(`/proc/${name}/cmdline`) ?? "").replaceAll("\0", " ").trim().slice(0, 200);
    return [{ pid: Number(name), parentPid: Number(parentPid), command }];
  });
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
