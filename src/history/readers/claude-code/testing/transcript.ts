import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readAll } from "../../../reader.spec.ts";
import type { Family, FamilyAgent } from "../../../state/family.ts";
import { type FamilyByCall, treesOf, withCalls } from "../../../testing/trees.ts";
import type { LiveSession } from "../../../port.ts";
import { judgeTree } from "../../../state/trees.ts";
import { claudeCode } from "../index.ts";

type Fields = Record<string, unknown>;

/** Writes the rows of one transcript as Claude Code does, each a child of the row before. */
export class Transcript {
  readonly sessionId: string;
  readonly rows: Fields[] = [];
  readonly envelope: Fields;
  #second = 0;
  #message = 0;
  #last: string | null = null;

  constructor(sessionId: string, options: { agentId?: string; from?: number; fields?: Fields } = {}) {
    this.sessionId = sessionId;
    this.#second = options.from ?? 0;
    this.envelope = {
      isSidechain: options.agentId !== undefined,
      ...(options.agentId === undefined ? {} : { agentId: options.agentId }),
      userType: "external",
      cwd: "/w/app",
      sessionId,
      version: "2.1.223",
      gitBranch: "main",
      ...options.fields,
    };
  }

  get lastId(): string {
    return this.#last ?? "";
  }

  /** `fields` replace the default fields of a row. */
  row(type: string, fields: Fields): this {
    const agent = this.envelope["agentId"] ?? "";
    const uuid = `${this.sessionId}${String(agent)}-${this.rows.length}`;
    const base = { parentUuid: this.#last, ...this.envelope, type, uuid, timestamp: this.time() };
    this.rows.push({ ...base, ...fields });
    this.#last = (fields["uuid"] as string | undefined) ?? uuid;
    return this;
  }

  /** Adds these fields as a row, without the id and the parent that other rows get. */
  beside(fields: Fields): this {
    this.rows.push(fields);
    return this;
  }

  time(): string {
    this.#second += 1;
    return new Date(Date.UTC(2026, 7, 1, 10, 0, this.#second)).toISOString();
  }

  user(content: unknown, fields: Fields = {}): this {
    return this.row("user", { message: { role: "user", content }, ...fields });
  }

  /** Adds one answer with one row for each block, as Claude Code writes it. */
  answer(blocks: readonly Fields[], stop: string | null = "tool_use", fields: Fields = {}): this {
    this.#message += 1;
    const id = `msg_${this.sessionId}_${this.#message}`;
    for (const block of blocks) {
      const usage = {
        input_tokens: 3,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 10,
        output_tokens: 20,
      };
      const message = {
        id,
        type: "message",
        role: "assistant",
        model: "claude-opus-4-8",
        content: [block],
        stop_reason: stop,
        usage,
      };
      this.row("assistant", { requestId: `req_${id}`, message, ...fields });
    }
    return this;
  }

  says(text: string, stop: string | null = "end_turn"): this {
    return this.answer([{ type: "text", text }], stop);
  }

  spawns(...calls: { id: string; prompt: string; input?: Fields; tool?: string }[]): this {
    return this.answer(
      calls.map(({ id, prompt, input, tool }) => ({
        type: "tool_use",
        id,
        name: tool ?? "Agent",
        input: { description: `does ${prompt}`, subagent_type: "general-purpose", prompt, ...input },
      })),
    );
  }

  result(callId: string, text: string, fields: Fields & { isError?: boolean } = {}): this {
    const { isError, ...rest } = fields;
    const block = {
      type: "tool_result",
      tool_use_id: callId,
      content: [{ type: "text", text }],
      ...(isError ? { is_error: true } : {}),
    };
    return this.user([block], rest);
  }

  /** Adds the rows that Claude Code writes when a turn in a main transcript ends. */
  endsTurn(fields: Fields = {}): this {
    this.row("system", {
      subtype: "turn_duration",
      durationMs: 4000,
      messageCount: 5,
      isMeta: false,
      ...fields,
    });
    return this.beside({ type: "last-prompt", lastPrompt: "Do X", sessionId: this.sessionId });
  }

  text(): string {
    return this.rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  }
}

/** The ids of a session and its sub-agents, and the paths of their files. */
export const S = "11111111-1111-4111-8111-111111111111";
export const A = "a0000000000000001";
export const B = "a0000000000000002";
export const C = "a0000000000000003";
export const MAIN = `-w-app/${S}.jsonl`;
export const at = (agentId: string, ending = "jsonl"): string =>
  `-w-app/${S}/subagents/agent-${agentId}.${ending}`;
export const main = (): Transcript => new Transcript(S).user("Do X");
export const child = (agentId: string, prompt = "Look at Y"): Transcript =>
  new Transcript(S, { agentId, from: 2 }).user(prompt);
export const sidecar = (toolUseId: string, fields = {}): Fields => ({
  agentType: "Explore",
  description: "looks",
  toolUseId,
  ...fields,
});
export const launched = (agentId: string): Fields => ({
  toolUseResult: { isAsync: true, status: "async_launched", agentId },
});

export function notice(taskId: string, callId: string, status: string): string {
  return `<task-notification>\n<task-id>${taskId}</task-id>\n<tool-use-id>${callId}</tool-use-id>\n<status>${status}</status>\n<summary>Agent "x" ${status}</summary>\n<result>It is done</result>\n</task-notification>`;
}

export function enqueued(transcript: Transcript, content: string): Fields {
  return {
    type: "queue-operation",
    operation: "enqueue",
    timestamp: transcript.time(),
    sessionId: transcript.sessionId,
    content,
  };
}

export async function lay(
  root: string,
  files: Readonly<Record<string, Transcript | Fields | string>>,
): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(root, "projects", name);
    await mkdir(dirname(path), { recursive: true });
    const text =
      content instanceof Transcript
        ? content.text()
        : typeof content === "string"
          ? content
          : JSON.stringify(content);
    await writeFile(path, text);
  }
}

export const ALIVE: Omit<LiveSession, "id"> = {
  pid: 1,
  startedAt: Date.UTC(2026, 7, 1, 9),
  alive: true,
  doing: "busy",
  how: "its process 1 is alive",
};
export const DEAD: Omit<LiveSession, "id"> = {
  ...ALIVE,
  alive: false,
  doing: null,
  how: "its process 1 is gone",
};

export async function families(
  root: string,
  options: {
    live?: Omit<LiveSession, "id">;
    listed?: readonly LiveSession[];
    seenWorking?: ReadonlyMap<string, string>;
  } = {},
): Promise<Map<string, FamilyByCall>> {
  const found = await Array.fromAsync(claudeCode.discover(root, () => undefined));
  const sessions = await Promise.all(
    found.map(async (one) => ({ found: one, state: (await readAll(claudeCode, one)).state })),
  );
  const { live, seenWorking } = options;
  return new Map(
    treesOf(sessions).map((tree) => {
      const id = tree.root?.facts.id ?? "";
      const listed = options.listed ?? (live === undefined ? [] : [{ ...live, id }]);
      const known = { listed, ...(seenWorking === undefined ? {} : { seenWorking }) };
      return [id, withCalls(judgeTree(claudeCode, tree, known), tree)];
    }),
  );
}

/** Describes each member in a few words: depth, id, call, state, certainty. */
export function shapeOf(family: Family): string[] {
  return family.agents.map(({ status }) => {
    const { depth, agentId, toolUseId, state, confidence } = status;
    return `${depth} ${agentId} ${toolUseId} ${state} ${confidence}`;
  });
}

export function agent(family: Family | undefined, id: string): FamilyAgent {
  const found = family?.agents.find(({ status }) => status.agentId === id);
  if (found === undefined) throw new Error(`no sub-agent ${id}`);
  return found;
}
