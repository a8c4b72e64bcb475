import { realpath } from "node:fs/promises";
import type { LiveSession, ProcessProbe } from "../../port.ts";
import { databasesIn } from "./layout.ts";
import { type Seen, sessionsIn } from "./sessions.ts";

/**
 * Lists live sessions by open databases. OpenCode keeps no list of its processes, but each holds its database
 * open while it lives. It does not record which session it works on, so every session written since the
 * process started may be its work.
 */
export async function readLive(root: string, probe: ProcessProbe): Promise<LiveSession[]> {
  seesAll = (await probe.shows?.("opencode")) ?? false;
  const live: LiveSession[] = [];
  for (const path of await databasesIn(root)) {
    const real = await realpath(path).catch(() => path);
    const holders = await probe.holders(new Set([real, `${real}-wal`]));
    const pid = holders.get(real) ?? holders.get(`${real}-wal`);
    if (pid === undefined) continue;
    const startedAt = probe.startedAt?.(pid) ?? null;
    const sessions = await sessionsIn(path).catch(() => new Map<string, Seen>());
    const how = `a process of the agent, ${pid}, has its database open`;
    for (const id of writtenSince(sessions, startedAt ?? 0)) {
      live.push({ id, pid, startedAt, alive: true, doing: null, how });
    }
  }
  return live;
}

/** Whether all processes were visible when `readLive` was last called. */
let seesAll = false;

/**
 * Whether a closed database proves that no process works on its sessions. It does not if some process cannot
 * be inspected, or if the version has no database.
 */
export function listsHolders(version: string | null): boolean {
  const [major, minor] = (version ?? "").split(".").map((part) => Number.parseInt(part, 10));
  if (!seesAll || major === undefined || minor === undefined) return false;
  return major > 1 || (major === 1 && minor >= 16);
}

/** Returns the root ids of the trees that were written to. */
function writtenSince(sessions: ReadonlyMap<string, Seen>, since: number): Set<string> {
  const tops = new Set<string>();
  for (const one of sessions.values()) {
    if (one.updatedAt < since) continue;
    const passed = new Set<Seen>();
    let top = one;
    while (top.parentId !== null && !passed.has(top)) {
      passed.add(top);
      top = sessions.get(top.parentId) ?? top;
    }
    tops.add(top.id);
  }
  return tops;
}
