import { readlinkSync } from "node:fs";
import { chooseSandbox } from "../../src/drivers/process/sandbox.ts";
import type { TestHome } from "./daemon.ts";

export type Marked = ReturnType<TestHome["agents"]>[number];

/** The kinds of sandbox for an agent's processes. */
export const SANDBOXES = ["bubblewrap", "namespaces", "guard"] as const;

/** Returns why this sandbox cannot be tested here, or false if it works. */
export async function whyNot(sandbox: (typeof SANDBOXES)[number]): Promise<string | false> {
  const found = await chooseSandbox(sandbox);
  return found.kind === "none" ? found.problem : false;
}

/** Returns the marked processes whose working directory is this folder. */
export function marksIn(home: TestHome, folder: string): Marked[] {
  return home.agents().filter((each) => folderOf(each.pid) === folder);
}

/** Returns the leases with a running process whose command line begins with these words. */
export function leasesRunning(marked: readonly Marked[], words: string): Set<string> {
  return new Set(marked.filter((each) => each.command.trim().startsWith(words)).map((each) => each.lease));
}

/** Returns the agents, without the processes that supervise them or that they have started. */
export function simsOf(marked: readonly Marked[]): Marked[] {
  return marked.filter(
    ({ command }) => command.startsWith(process.execPath) && command.includes("/sim/agent.ts"),
  );
}

/** Returns the pids of the given processes that still carry the same lease. */
export function stillThere(home: TestHome, before: readonly Marked[]): number[] {
  const now = new Map(home.agents().map((each) => [each.pid, each.lease]));
  return before.filter((each) => now.get(each.pid) === each.lease).map((each) => each.pid);
}

function folderOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // The process has ended since it was listed.
    return null;
  }
}
