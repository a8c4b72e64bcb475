import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

/** Whether a process of this pid works, be it ours or not. One that has ended and was not collected does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return !isZombie(pid);
}

/**
 * The command line of a process, null if it cannot be known. Pids are used again: before a
 * recorded pid is signalled, this must look like what was recorded.
 */
export async function commandOf(pid: number): Promise<string | null> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, "utf8")).replaceAll("\0", " ").trim() || null;
  } catch {
    return await commandByPs(pid);
  }
}

export function looksLikeDaemon(command: string | null): boolean {
  return command !== null && /\bdaemon\.[mc]?[jt]s\b|\bkinfold\b|cli\/main\.ts\b/.test(command);
}

/** Resolves to true as soon as the process is gone, to false when the time is up. */
export async function waitUntilGone(pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(pid)) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return true;
}

/** Known on Linux only; elsewhere whoever started the process collects it. One that is gone by now counts too. */
function isZombie(pid: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

async function commandByPs(pid: number): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)("ps", ["-p", String(pid), "-o", "command="]);
    return stdout.trim() || null;
  } catch {
    return null;
  }
}
