import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { Family } from "../../../state/family.ts";
import type { FoundSession, LiveSession } from "../../../port.ts";
import { type Reading, readAll } from "../../../reader.spec.ts";
import { judgeTree } from "../../../state/trees.ts";
import { type FamilyByCall, type ReadSession, treesOf, withCalls } from "../../../testing/trees.ts";
import { opencode } from "../index.ts";

type Fields = Record<string, unknown>;

export const SCHEMA = `
CREATE TABLE \`project\` (\`id\` text PRIMARY KEY, \`worktree\` text NOT NULL, \`vcs\` text, \`name\` text, \`time_created\` integer NOT NULL, \`time_updated\` integer NOT NULL, \`sandboxes\` text NOT NULL);
CREATE TABLE \`session\` (\`id\` text PRIMARY KEY, \`project_id\` text NOT NULL, \`workspace_id\` text, \`parent_id\` text, \`slug\` text NOT NULL, \`directory\` text NOT NULL, \`path\` text, \`title\` text NOT NULL, \`version\` text NOT NULL, \`share_url\` text, \`summary_additions\` integer, \`summary_deletions\` integer, \`summary_files\` integer, \`summary_diffs\` text, \`metadata\` text, \`cost\` real DEFAULT 0 NOT NULL, \`tokens_input\` integer DEFAULT 0 NOT NULL, \`tokens_output\` integer DEFAULT 0 NOT NULL, \`tokens_reasoning\` integer DEFAULT 0 NOT NULL, \`tokens_cache_read\` integer DEFAULT 0 NOT NULL, \`tokens_cache_write\` integer DEFAULT 0 NOT NULL, \`revert\` text, \`permission\` text, \`agent\` text, \`model\` text, \`time_created\` integer NOT NULL, \`time_updated\` integer NOT NULL, \`time_compacting\` integer, \`time_archived\` integer, CONSTRAINT \`fk_session_project\` FOREIGN KEY (\`project_id\`) REFERENCES \`project\`(\`id\`) ON DELETE CASCADE);
CREATE TABLE \`message\` (\`id\` text PRIMARY KEY, \`session_id\` text NOT NULL, \`time_created\` integer NOT NULL, \`time_updated\` integer NOT NULL, \`data\` text NOT NULL);
CREATE TABLE \`part\` (\`id\` text PRIMARY KEY, \`message_id\` text NOT NULL, \`session_id\` text NOT NULL, \`time_created\` integer NOT NULL, \`time_updated\` integer NOT NULL, \`data\` text NOT NULL);
CREATE INDEX \`message_session_time_created_id_idx\` ON \`message\` (\`session_id\`,\`time_created\`,\`id\`);
CREATE INDEX \`part_message_id_id_idx\` ON \`part\` (\`message_id\`,\`id\`);
CREATE INDEX \`part_session_idx\` ON \`part\` (\`session_id\`);
`;

/** The tables of the first version: only the columns that every version has, and no index. */
export const OLD_SCHEMA = `
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, data TEXT NOT NULL);
`;

/** Writes rows to a database as OpenCode does. Leaves out fields for which the table has no column. */
export class Writer {
  readonly sql: DatabaseSync;
  #second = 0;
  #count = 0;

  constructor(path: string, schema = SCHEMA) {
    this.sql = new DatabaseSync(path);
    this.sql.exec(`PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF; ${schema}`);
    // An empty schema means that the database exists already. The ids of new rows must sort after its ids.
    if (schema === "") this.#count = 1000;
  }

  close(): void {
    this.sql.close();
  }

  put(table: string, row: Fields): this {
    const has = new Set(
      this.sql
        .prepare(`PRAGMA table_info(${table})`)
        .all()
        .map(({ name }) => name),
    );
    const fields = Object.entries(row).filter(([name]) => has.has(name));
    const values = fields.map(([, value]): SQLInputValue =>
      typeof value === "object" && value !== null ? JSON.stringify(value) : (value as SQLInputValue),
    );
    const names = fields.map(([name]) => name);
    this.sql
      .prepare(`INSERT OR REPLACE INTO ${table} (${names.join()}) VALUES (${names.map(() => "?").join()})`)
      .run(...values);
    return this;
  }

  now(): number {
    this.#second += 1;
    return Date.UTC(2026, 7, 1, 10, 0, this.#second);
  }

  session(id: string, fields: Fields = {}): this {
    const at = this.now();
    const row = {
      id,
      project_id: "p",
      slug: id,
      directory: "/w/app",
      title: `About ${id}`,
      version: "1.18.33",
    };
    return this.put("session", { ...row, time_created: at, time_updated: at, ...fields });
  }

  /** Each call creates a greater id than the call before. */
  message(sessionId: string, data: Fields, parts: readonly Fields[] = []): string {
    const id = this.#id("msg");
    const at = this.now();
    const filled = {
      time: { created: at, completed: data["role"] === "assistant" ? at : undefined },
      ...data,
    };
    this.put("message", { id, session_id: sessionId, time_created: at, time_updated: at, data: filled });
    for (const part of parts) this.part(sessionId, id, part);
    return id;
  }

  part(sessionId: string, messageId: string, data: Fields): string {
    const id = this.#id("prt");
    const at = this.now();
    this.put("part", {
      id,
      message_id: messageId,
      session_id: sessionId,
      time_created: at,
      time_updated: at,
      data,
    });
    return id;
  }

  user(sessionId: string, text: string, fields: Fields = {}): string {
    return this.message(sessionId, { role: "user", agent: "build" }, [{ type: "text", text, ...fields }]);
  }

  answer(sessionId: string, text: string, fields: Fields = {}): string {
    const tokens = { input: 10, output: 2, reasoning: 1, cache: { read: 4, write: 3 } };
    const data = {
      role: "assistant",
      modelID: "m1",
      providerID: "scripted",
      cost: 0.25,
      tokens,
      finish: "stop",
      ...fields,
    };
    return this.message(sessionId, data, text === "" ? [] : [{ type: "text", text }]);
  }

  /** Adds a message of the agent with a tool call that starts a sub-agent. */
  task(sessionId: string, callID: string, state: Fields, fields: Fields = {}): string {
    const times = { start: this.now(), end: this.now() };
    const input = { description: `work ${callID}`, prompt: `Do ${callID}`, subagent_type: "general" };
    return this.message(
      sessionId,
      { role: "assistant", modelID: "m1", providerID: "scripted", finish: "tool-calls", ...fields },
      [{ type: "tool", tool: "task", callID, state: { input, time: times, ...state } }],
    );
  }

  #id(kind: string): string {
    this.#count += 1;
    return `${kind}_${String(this.#count).padStart(6, "0")}`;
  }
}

const recordedRows = (name: string): Fields[] =>
  readFileSync(new URL(`fixtures/${name}.jsonl`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Fields);

export function layRecorded(path: string, schema = SCHEMA): Writer {
  const writer = new Writer(path, schema);
  for (const table of ["session", "message", "part"]) {
    for (const row of recordedRows(table)) writer.put(table, row);
  }
  return writer;
}

/** Writes the recorded database event by event, as the agent wrote it. */
export function* replay(writer: Writer): Generator<string> {
  for (const event of recordedRows("event")) {
    const data = event["data"] as Fields;
    const type = event["type"] as string;
    const info = (data["info"] ?? data["part"]) as Fields;
    const { id, sessionID, messageID, parentID, ...rest } = info;
    if (type.startsWith("session.")) {
      const time = info["time"] as { created: number; updated: number };
      const { title, directory, version, agent } = info as Record<string, string | undefined>;
      const fields = { parent_id: parentID ?? null, title, directory, version, agent: agent ?? null };
      writer.session(id as string, { ...fields, time_created: time.created, time_updated: time.updated });
    } else if (type.startsWith("message.part.")) {
      const at = data["time"] as number;
      const known = writer.sql.prepare("SELECT time_created FROM part WHERE id = ?").get(id as string);
      const times = { time_created: known?.["time_created"] ?? at, time_updated: at };
      writer.put("part", { id, message_id: messageID, session_id: sessionID, ...times, data: rest });
    } else {
      const { created, completed } = info["time"] as { created: number; completed?: number };
      const times = { time_created: created, time_updated: completed ?? created };
      writer.put("message", { id, session_id: sessionID, ...times, data: { parentID, ...rest } });
    }
    yield type;
  }
}

/** Writes the sessions of the writer's database as a tree of files, as older versions of OpenCode did. */
export async function layTree(root: string, writer: Writer): Promise<void> {
  const put = async (path: string, value: unknown): Promise<void> => {
    const file = join(root, "storage", `${path}.json`);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, JSON.stringify(value, null, 2));
  };
  const all = (table: string): Fields[] => writer.sql.prepare(`SELECT * FROM ${table}`).all();
  for (const row of all("session")) {
    const { id, parent_id, directory, title, version, agent, time_created, time_updated } = row;
    const time = { created: time_created, updated: time_updated };
    const session = {
      id,
      version,
      projectID: "p",
      directory,
      parentID: parent_id ?? undefined,
      title,
      agent,
      time,
    };
    await put(`session/p/${String(id)}`, session);
  }
  for (const { id, session_id, data } of all("message")) {
    const fields = { id, sessionID: session_id, ...(JSON.parse(String(data)) as Fields) };
    await put(`message/${String(session_id)}/${String(id)}`, fields);
  }
  for (const { id, session_id, message_id, data } of all("part")) {
    const fields = {
      id,
      sessionID: session_id,
      messageID: message_id,
      ...(JSON.parse(String(data)) as Fields),
    };
    await put(`part/${String(message_id)}/${String(id)}`, fields);
  }
}

export interface ReadOne {
  readonly found: FoundSession;
  readonly reading: Reading;
}

/** Returns all sessions below a root, by session id. Reads only what is new since `earlier`, if given. */
export async function readRoot(
  root: string,
  earlier?: ReadonlyMap<string, ReadOne>,
): Promise<Map<string, ReadOne>> {
  const found = await Array.fromAsync(opencode.discover(root, () => undefined));
  const read = found.map(async (one): Promise<[string, ReadOne]> => {
    const before = earlier?.get(one.id)?.reading;
    return [
      one.id,
      { found: one, reading: await readAll(opencode, one, before === undefined ? {} : { before }) },
    ];
  });
  return new Map(await Promise.all(read));
}

export async function families(
  root: string,
  listed?: readonly LiveSession[],
): Promise<Map<string, FamilyByCall>> {
  const sessions = [...(await readRoot(root)).values()].map(({ found, reading }): ReadSession => ({
    found,
    state: reading.state,
  }));
  const known = listed === undefined ? {} : { listed };
  return new Map(
    treesOf(sessions).map((tree) => [
      tree.root?.facts.id ?? tree.members[0]?.facts.id ?? "",
      withCalls(judgeTree(opencode, tree, known), tree),
    ]),
  );
}

export function shapeOf(family: Family | undefined): string[] {
  return (family?.agents ?? []).map(({ status: { depth, agentId, toolUseId, state, confidence } }) =>
    [depth, agentId, toolUseId, state, confidence].join(" "),
  );
}
