import { realpath } from "node:fs/promises";
import type { LiveSession, ProcessProbe } from "../port.ts";
import { databasesIn, sessionsIn, type Seen, withDatabase } from "./layout.ts";

/**
 * OpenCode keeps no list of its processes, but a process of it holds its database open as long as it
 * lives. Which session it works on is not written anywhere: every one that was written to since that
 * process began may be its work, and none that was not.
 */
export async function readLive(root: string, probe: ProcessProbe): Promise<LiveSession[]> {
  const live: LiveSession[] = [];
  for (const path of await databasesIn(root)) {
    const real = await realpath(path).catch(() => path);
    const holders = await probe.holders(new Set([real, `${real}-wal`]));
    const pid = holders.get(real) ?? holders.get(`${real}-wal`);
    if (pid === undefined) continue;
    const startedAt = probe.startedAt?.(pid) ?? null;
    const sessions = await withDatabase(path, sessionsIn).catch(() => new Map<string, Seen>());
    const how = `a process of the agent, ${pid}, has its database open`;
    for (const id of writtenSince(sessions, startedAt ?? 0)) {
      live.push({ id, pid, startedAt, alive: true, doing: null, how });
    }
  }
  return live;
}

/** Before it had a database the agent held nothing open, and the absence of a holder proves nothing. */
export function isHeldWhileAlive(version: string | null): boolean {
  const [major, minor] = (version ?? "").split(".").map((part) => Number.parseInt(part, 10));
  if (process.platform !== "linux" || major === undefined || minor === undefined) return false;
  return major > 1 || (major === 1 && minor >= 16);
}

/** The ids at the top of the trees in which anything was written. */
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
