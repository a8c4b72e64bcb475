import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Family } from "../../../state/family.ts";
import type { FoundSession } from "../../../port.ts";
import { type Reading, readAll } from "../../../reader.spec.ts";
import { judgeTree } from "../../../state/trees.ts";
import { type ReadSession, treesOf } from "../../../testing/trees.ts";
import { gemini } from "../index.ts";

type Fields = Record<string, unknown>;

export class Recording {
  readonly id: string;
  readonly rows: Fields[] = [];
  #second = 0;
  #count = 0;

  constructor(id: string, head: Fields = {}) {
    this.id = id;
    const startTime = this.time();
    this.rows.push({
      sessionId: id,
      projectHash: "0".repeat(64),
      startTime,
      lastUpdated: startTime,
      kind: "main",
      ...head,
    });
  }

  time(): string {
    this.#second += 1;
    return new Date(Date.UTC(2026, 7, 1, 10, 0, this.#second)).toISOString();
  }

  message(type: string, content: unknown, fields: Fields = {}): this {
    this.#count += 1;
    const id = `${this.id}-${this.#count}`;
    this.rows.push({ id, timestamp: this.time(), type, content, ...fields });
    return this;
  }

  user(text: string, fields: Fields = {}): this {
    return this.message("user", [{ text }], fields);
  }

  answer(text: string, fields: Fields = {}): this {
    const tokens = { input: 10, output: 2, cached: 4, thoughts: 1, tool: 0, total: 13 };
    return this.message("gemini", text, { thoughts: [], tokens, model: "gemini-2.5-pro", ...fields });
  }

  calls(...toolCalls: Fields[]): this {
    const timed = toolCalls.map((call) => ({ status: "success", timestamp: this.time(), args: {}, ...call }));
    return this.message("gemini", "", { toolCalls: timed, thoughts: [], model: "gemini-2.5-pro" });
  }

  row(fields: Fields): this {
    this.rows.push(fields);
    return this;
  }

  get messages(): Fields[] {
    return this.rows.filter((row) => "id" in row);
  }

  get name(): string {
    return `session-2026-08-01T10-00-${this.id.slice(0, 8)}`;
  }

  async write(root: string, path = `tmp/app/chats/${this.name}.jsonl`): Promise<string> {
    const file = join(root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, this.rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    return file;
  }

  /** Writes the format used until the end of 2025: one object. */
  async writeWhole(
    root: string,
    fields: Fields = {},
    path = `tmp/app/chats/${this.name}.json`,
  ): Promise<string> {
    const file = join(root, path);
    await mkdir(dirname(file), { recursive: true });
    const { kind: _, ...head } = this.rows[0] as Fields;
    await writeFile(file, JSON.stringify({ ...head, messages: this.messages, ...fields }, null, 2));
    return file;
  }
}

export interface ReadOne {
  readonly found: FoundSession;
  readonly reading: Reading;
}

export async function readRoot(root: string): Promise<Map<string, ReadOne>> {
  const found = await Array.fromAsync(gemini.discover(root, () => undefined));
  const read = found.map(async (one): Promise<[string, ReadOne]> => [
    one.id,
    { found: one, reading: await readAll(gemini, one) },
  ]);
  return new Map(await Promise.all(read));
}

export async function families(root: string): Promise<Map<string, Family>> {
  const sessions = [...(await readRoot(root)).values()].map(({ found, reading }): ReadSession => ({
    found,
    state: reading.state,
  }));
  return new Map(treesOf(sessions).map((tree) => [tree.root?.facts.id ?? "", judgeTree(gemini, tree)]));
}
