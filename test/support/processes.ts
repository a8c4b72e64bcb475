import { readlinkSync } from "node:fs";
import { chooseSandbox } from "../../src/drivers/process/sandbox.ts";
import type { TestHome } from "./daemon.ts";

export type Marked = ReturnType<TestHome["agents"]>[number];

/** The kinds of sandbox for an agent's processes. */
export const SANDBOXES = ["bubblewrap", "namespaces", "guard"] as const;

/** Why this sandbox cannot be tested here; false where it works. */
export async function whyNot(sandbox: (typeof SANDBOXES)[number]): Promise<string | false> {
  const found = await chooseSandbox(sandbox);
  return found.kind === "none" ? found.problem : false;
}

/** The marked processes that work in this folder. */
export function marksIn(home: TestHome, folder: string): Marked[] {
  return home.agents().filter((each) => folderOf(each.pid) === folder);
}

/** Leases of which a shell command with these words runs: a process in a session of its own. */
export function leasesRunning(marked: readonly Marked[], words: string): Set<string> {
  return new Set(marked.filter((each) => each.command.trim().startsWith(words)).map((each) => each.lease));
}

/** Agents themselves, without what holds them and without what they have started. */
export function simsOf(marked: readonly Marked[]): Marked[] {
  return marked.filter(
    ({ command }) => command.startsWith(process.execPath) && command.includes("/sim/agent.ts"),
  );
}

/** The pids of these that still carry the marker they had. */
export function stillThere(home: TestHome, before: readonly Marked[]): number[] {
  const now = new Map(home.agents().map((each) => [each.pid, each.lease]));
  return before.filter((each) => now.get(each.pid) === each.lease).map((each) => each.pid);
}

function folderOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // It ended since it was listed.
    return null;
  }
}
