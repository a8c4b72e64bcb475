import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * Identifies one life of a pid: the machine's boot and the start time of the process. Pids are used
 * again, this text is not. Null when there is no such process or the system does not say.
 */
export function processStart(pid: number): string | null {
  return process.platform === "linux" ? startInProc(pid) : startByPs(pid);
}

function startInProc(pid: number): string | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The program's name comes second, in parentheses, and may contain anything.
    const afterName = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return `${boot}/${afterName[START_TIME - AFTER_NAME]}`;
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

function startByPs(pid: number): string | null {
  try {
    const words = ["-p", String(pid), "-o", "lstart="];
    const env = { ...process.env, LC_ALL: "C" };
    return execFileSync("ps", words, { env, encoding: "utf8" }).trim() || null;
  } catch (error) {
    // `ps` exits with 1 for an unknown pid.
    if ((error as { status?: unknown }).status === 1 || isGone(error)) return null;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ESRCH" || code === "EACCES";
}

/** Fields of /proc/<pid>/stat, counted from 1 as in proc(5); the list after the name begins with field 3. */
const START_TIME = 22;
const AFTER_NAME = 3;
