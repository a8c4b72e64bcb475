import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { LiveSession, ProcessProbe } from "../../port.ts";
import { readSmallObject } from "../../lines/byte-file.ts";
import { isVersionAtLeast, timeOf } from "../../lines/text.ts";
import { asNumber, asText, type JsonObject } from "../../lines/value.ts";

/**
 * Reads `sessions/<pid>.json`, where Claude Code registers its processes. A killed process leaves its file
 * behind and pids are reused, so a process counts as alive only if its start time is the one in the file. The
 * file's age means nothing: the file is not rewritten during a turn.
 */
export async function readRegistry(root: string, probe: ProcessProbe): Promise<LiveSession[]> {
  const folder = join(root, "sessions");
  // Versions without a registry have no such folder.
  const names = await readdir(folder).catch((): string[] => []);
  const files = names.filter((name) => /^\d+\.json$/u.test(name)).toSorted();
  const read = await Promise.all(files.map((name) => readSmallObject(join(folder, name))));
  return read.flatMap((record) => (record === null ? [] : (liveOf(record, probe) ?? [])));
}

/**
 * Whether this version registers every process. Versions from 2.1.139 on do, and remove the file when the
 * process exits cleanly.
 */
export function keepsRegistry(version: string | null): boolean {
  return isVersionAtLeast(version, [2, 1, 139]);
}

function liveOf(record: JsonObject, probe: ProcessProbe): LiveSession | null {
  const pid = asNumber(record["pid"]);
  const id = asText(record["sessionId"]);
  if (pid === null || !Number.isInteger(pid) || pid <= 0 || id === null) return null;
  const alive = isAlive(record, pid, probe);
  const doing = DOING.get(asText(record["status"]) ?? "") ?? null;
  const says = doing === null ? "" : ` and says it is ${doing}`;
  return {
    id,
    pid,
    startedAt: timeOf(record["startedAt"]),
    alive,
    doing: alive === false ? null : doing,
    how: HOW[String(alive) as keyof typeof HOW].replace("$", String(pid)) + (alive === false ? "" : says),
  };
}

function isAlive(record: JsonObject, pid: number, probe: ProcessProbe): boolean | null {
  // A process in another container cannot be seen from here, and its pid may belong to a different process
  // here. So it is unknown whether it is alive.
  const space = /pid:\[\d+\]$/u.exec(asText(record["pidDomain"]) ?? "")?.[0];
  if (space !== undefined && space !== (probe.space() ?? space)) return null;
  const start = probe.startOf(pid);
  if (start === null) return false;
  const written = record["procStart"];
  const known = typeof written === "number" ? String(written) : asText(written);
  if (start === undefined || known === null) return probe.exists(pid) ? null : false;
  return start === known;
}

const HOW = {
  true: "its process $ is alive",
  false: "its process $ is gone",
  null: "it is not visible from here whether its process $ is alive",
} as const;

/** `shell`: a person is using the agent's shell, so the agent is not working. */
const DOING: ReadonlyMap<string, LiveSession["doing"]> = new Map([
  ["busy", "busy"],
  ["idle", "idle"],
  ["shell", "idle"],
  ["waiting", "waiting"],
]);
