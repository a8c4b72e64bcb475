import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { type FamilyMember, familyOf } from "../../../state/family.ts";
import { livenessOf } from "../../../state/trees.ts";
import { type FamilyByCall, withCalls } from "../../../testing/trees.ts";
import type { ProcessProbe } from "../../../../system/process-probe.ts";
import { discoverAll, readAll, type Reading } from "../../../reader.spec.ts";
import { codex } from "../index.ts";
import { ROOT_PATH } from "../notes.ts";

/** A row of a Codex file. The functions below take its time in seconds after `BEGAN`. */
export type Row = Readonly<Record<string, unknown>>;

const BEGAN = Date.parse("2026-08-01T10:00:00.000Z");

/** Returns an id that contains its time, as Codex makes them; `name` distinguishes ids of the same second. */
export function idAt(second: number, name: string): string {
  const time = (BEGAN + second * 1000).toString(16).padStart(12, "0");
  const end = Buffer.from(name).toString("hex").padEnd(12, "0").slice(0, 12);
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${end}`;
}

export function agentPath(...names: string[]): string {
  return [ROOT_PATH, ...names].join("/");
}

export function timeAt(second: number): string {
  return new Date(BEGAN + second * 1000).toISOString();
}

export function row(second: number, type: string, payload: Row): Row {
  return { timestamp: timeAt(second), type, payload };
}

export function meta(second: number, id: string, fields: Row = {}): Row {
  const own = {
    id,
    timestamp: timeAt(second),
    cwd: "/w/app",
    originator: "codex-tui",
    cli_version: "0.149.0",
  };
  return row(second, "session_meta", { session_id: id, ...own, source: "cli", ...fields });
}

export function spawned(parentId: string, rootId: string, fields: Row = {}): Row {
  const spawn = { parent_thread_id: parentId, depth: 1, agent_path: null, ...fields };
  return {
    session_id: rootId,
    parent_thread_id: parentId,
    source: { subagent: { thread_spawn: spawn } },
    thread_source: "subagent",
    ...fields,
  };
}

export function event(second: number, type: string, fields: Row = {}): Row {
  return row(second, "event_msg", { type, ...fields });
}

export function item(second: number, type: string, fields: Row): Row {
  return row(second, "response_item", { type, ...fields });
}

/** Returns a prompt as a file without ordinals has it: the item, then its event. */
export function prompt(second: number, text: string): Row[] {
  return [userItem(second, text), event(second, "user_message", { message: text })];
}

export function userItem(second: number, text: string): Row {
  return item(second, "message", { role: "user", content: [{ type: "input_text", text }] });
}

export function answer(second: number, text: string, fields: Row = {}): Row {
  return item(second, "message", { role: "assistant", content: [{ type: "output_text", text }], ...fields });
}

export function call(second: number, callId: string, name: string, input: Row): Row {
  return item(second, "function_call", { name, arguments: JSON.stringify(input), call_id: callId });
}

export function output(second: number, callId: string, value: unknown): Row {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return item(second, "function_call_output", { call_id: callId, output: text });
}

export function turn(second: number, rows: readonly Row[], end: Row = {}): Row[] {
  const turn_id = idAt(second, "turn");
  return [
    event(second, "task_started", { turn_id }),
    row(second, "turn_context", { turn_id, cwd: "/w/app", model: "gpt-5.6" }),
    ...rows,
    event(second + 9, "task_complete", { turn_id, last_agent_message: "Done.", ...end }),
  ];
}

/** Adds ordinals to rows, as newer files have them. */
export function numbered(rows: readonly Row[], from = 0): Row[] {
  return rows.map((one, index) => ({ ...one, ordinal: from + index }));
}

export interface FileOptions {
  readonly isArchived?: boolean;
  readonly isPacked?: boolean;
  /** The file's own id. After a rollback it follows the session's id in the file's name. */
  readonly rolloutId?: string;
  readonly second?: number;
}

export async function writeRollout(
  root: string,
  id: string,
  rows: readonly Row[],
  { isArchived = false, isPacked = false, rolloutId, second = 0 }: FileOptions = {},
): Promise<string> {
  const folder = join(root, isArchived ? "archived_sessions" : "sessions/2026/08/01");
  const ids = rolloutId === undefined ? id : `${id}_${rolloutId}`;
  const stamp = timeAt(second).slice(0, 19).replaceAll(":", "-");
  const path = join(folder, `rollout-${stamp}-${ids}.jsonl${isPacked ? ".zst" : ""}`);
  const text = rows.map((one) => `${JSON.stringify(one)}\n`).join("");
  await mkdir(folder, { recursive: true });
  await writeFile(path, isPacked ? zstdCompressSync(text) : text);
  return path;
}

export interface Read {
  readonly members: readonly FamilyMember[];
  readonly readings: ReadonlyMap<string, Reading>;
  family(rootId: string, probe?: ProcessProbe): Promise<FamilyByCall>;
}

export async function readRoot(root: string): Promise<Read> {
  const readings = new Map<string, Reading>();
  const members: FamilyMember[] = [];
  for (const found of await discoverAll(codex, root)) {
    const reading = await readAll(codex, found);
    readings.set(found.id, reading);
    members.push({ key: found.key, facts: reading.state.facts });
  }
  return {
    members,
    readings,
    async family(rootId, probe = NO_PROCESSES) {
      const top = members.find(({ facts }) => facts.id === rootId) ?? null;
      const below = members.filter(({ facts }) => facts.rootId === rootId && facts.id !== rootId);
      const listed = await codex.live(root, probe);
      const live = top === null ? undefined : livenessOf({ listsLive: () => true }, top.facts, listed);
      const tree = { root: top, members: below };
      return withCalls(familyOf({ ...tree, ...(live === undefined ? {} : { live }) }), tree);
    },
  };
}

export const NO_PROCESSES: ProcessProbe = {
  startOf: () => null,
  space: () => null,
  exists: () => false,
  holders: async () => new Map(),
};
