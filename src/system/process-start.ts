import { execFileSync } from "node:child_process";
import { bootId, hasProc, startTicks } from "./proc.ts";

/**
 * Returns the boot and the start time of a process, which distinguish it from a later one with the same pid.
 * Null if there is no such process or the system does not report its start.
 */
export function processStart(pid: number): string | null {
  if (!hasProc()) return startByPs(pid);
  const start = startTicks(pid);
  return start === null ? null : `${bootId()}/${start}`;
}

function startByPs(pid: number): string | null {
  try {
    const words = ["-p", String(pid), "-o", "lstart="];
    const env = { ...process.env, LC_ALL: "C" };
    return execFileSync("ps", words, { env, encoding: "utf8" }).trim() || null;
  } catch (error) {
    // `ps` exits with 1 for an unknown pid.
    const { status, code } = error as { status?: unknown; code?: unknown };
    if (status === 1 || code === "ENOENT") return null;
    throw error;
  }
}
