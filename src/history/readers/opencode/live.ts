import { realpath } from "node:fs/promises";
import type { LiveSession, ProcessProbe } from "../../port.ts";
import { isVersionAtLeast } from "../../lines/text.ts";
import { databasesIn, topOf } from "./layout.ts";
import { type Seen, sessionsIn } from "./sessions.ts";

/**
 * Lists live sessions by open databases. OpenCode keeps no list of its processes, but each process holds its
 * database open until it exits. A process does not record which session it works on, so every session written
 * since the process started may be its work.
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
    const written = sessions.values().filter(({ updatedAt }) => updatedAt >= (startedAt ?? 0));
    for (const id of new Set(written.map((one) => topOf(one, sessions)))) {
      live.push({ id, pid, startedAt, alive: true, doing: null, how });
    }
  }
  return live;
}

/** Whether all processes were visible when `readLive` was last called. */
let seesAll = false;

/**
 * Whether it is certain that no process works on a session whose database is not seen open. It is certain
 * only if all processes can be inspected and this version of OpenCode has a database.
 */
export function listsHolders(version: string | null): boolean {
  return seesAll && isVersionAtLeast(version, [1, 16]);
}
