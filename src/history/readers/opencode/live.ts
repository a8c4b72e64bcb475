import { realpath } from "node:fs/promises";
import type { LiveSession, ProcessProbe } from "../../port.ts";
import { databasesIn } from "./layout.ts";
import { type Seen, sessionsIn } from "./sessions.ts";

/**
 * OpenCode keeps no list of its processes, but a process of it holds its database open as long as it
 * lives. Which session it works on is not written anywhere: every one that was written to since that
 * process began may be its work, and none that was not.
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

/** Of the machine, as it was when the living were last asked for. */
let seesAll = false;

/**
 * Whether a session is known to be left alone when nobody has its database open. A process in another
 * container, or one that nobody may look into, would have it open unseen; and versions before there was
 * a database had nothing open.
 */
export function listsHolders(version: string | null): boolean {
  const [major, minor] = (version ?? "").split(".").map((part) => Number.parseInt(part, 10));
  if (!seesAll || major === undefined || minor === undefined) return false;
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
