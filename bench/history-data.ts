import { mkdirSync, openSync, closeSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";

/**
 * The size of the history to generate, in Claude Code's format. A measurement never reads a person's real
 * files.
 */
export interface HistorySize {
  readonly families: number;
  readonly subagentsEach: number;
  readonly subagentBytes: number;
  /** The size of one additional long transcript. */
  readonly longBytes: number;
  /** The number of lines in one further session, which has `lineSubagents` sub-agents. */
  readonly lines: number;
  readonly lineSubagents: number;
}

export interface HistoryData {
  /** The folder that stands in for Claude Code's folder. */
  readonly root: string;
  readonly bytes: number;
  readonly longId: string;
  readonly linesId: string;
  /** A sub-agent's file to which the measurement appends rows. */
  readonly liveFile: string;
  readonly liveRow: (number: number) => string;
}

export const CWD = "/projects/app";
const PROJECT = "-projects-app";

export function makeHistory(root: string, size: HistorySize): HistoryData {
  const folder = path.join(root, "projects", PROJECT);
  let bytes = 0;
  let liveFile = "";
  for (let family = 0; family < size.families; family += 1) {
    const id = idOf(family);
    const agents = Array.from({ length: size.subagentsEach }, (_, i) => agentOf(family, i));
    bytes += writeMain(path.join(folder, `${id}.jsonl`), id, { agents, lines: 40 });
    const below = path.join(folder, id, "subagents");
    mkdirSync(below, { recursive: true });
    for (const agentId of agents) {
      liveFile = path.join(below, `agent-${agentId}.jsonl`);
      bytes += writeSubagent(liveFile, { id, agentId }, size.subagentBytes);
    }
  }
  const longId = idOf(900_001);
  bytes += writeSubagent(path.join(folder, `${longId}.jsonl`), { id: longId, agentId: null }, size.longBytes);
  const linesId = idOf(900_002);
  const agents = Array.from({ length: size.lineSubagents }, (_, i) => agentOf(900_002, i));
  bytes += writeMain(path.join(folder, `${linesId}.jsonl`), linesId, { agents, lines: size.lines });
  mkdirSync(path.join(folder, linesId, "subagents"), { recursive: true });
  for (const agentId of agents) {
    const file = path.join(folder, linesId, "subagents", `agent-${agentId}.jsonl`);
    bytes += writeSubagent(file, { id: linesId, agentId }, 20_000);
  }
  const live = { id: idOf(size.families - 1), agentId: agentOf(size.families - 1, size.subagentsEach - 1) };
  const liveRow = (number: number): string => {
    const rows = new Rows(live.id, live.agentId, 10_000_000 + number * 10);
    return rows.says(`live ${number}`);
  };
  return { root, bytes, longId, linesId, liveFile, liveRow };
}

function idOf(number: number): string {
  return `${String(number).padStart(8, "0")}-1111-4222-8333-944445555666`;
}

function agentOf(family: number, number: number): string {
  return `a${String(family * 1_000 + number).padStart(16, "0")}`;
}

/** Writes a top-level session: it starts its sub-agents, receives their results, and does work itself. */
function writeMain(
  file: string,
  id: string,
  { agents, lines }: { agents: readonly string[]; lines: number },
): number {
  const rows = new Rows(id, null, 0);
  const text = [rows.asks("Do it all.")];
  for (const agentId of agents) {
    text.push(
      rows.calls("Agent", `toolu_${agentId}`, {
        description: `part ${agentId}`,
        prompt: `Do part ${agentId}.`,
      }),
    );
    text.push(
      rows.gets(`toolu_${agentId}`, `Done: ${agentId}`, { status: "completed", agentId, totalDurationMs: 5 }),
    );
  }
  for (let i = text.length; i < lines; i += 2) {
    text.push(
      rows.calls("Bash", `toolu_${id}_${i}`, { command: `ls part-${i}` }),
      rows.gets(`toolu_${id}_${i}`, WORDS.slice(0, 600)),
    );
  }
  text.push(rows.says("All of it is done."));
  const whole = text.join("");
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, whole);
  return Buffer.byteLength(whole);
}

/** Writes a sub-agent's typical work: text, reads and edits of files, commands with long outputs. */
function writeSubagent(
  file: string,
  { id, agentId }: { id: string; agentId: string | null },
  bytes: number,
): number {
  const handle = openSync(file, "w");
  const rows = new Rows(id, agentId, 1_000);
  let written = writeSync(handle, rows.asks(agentId === null ? "Work for long." : `Do part ${agentId}.`));
  const name = agentId ?? id;
  for (let i = 0; written < bytes; i += 1) {
    const call = `toolu_${name}_${i}`;
    const long = WORDS.slice((i * 97) % 4_000, ((i * 97) % 4_000) + LENGTHS[i % LENGTHS.length]!);
    const piece = [
      rows.says(`Step ${i}. ${WORDS.slice(i % 2_000, (i % 2_000) + 700)}`, null),
      rows.calls("Read", call, { file_path: `${CWD}/src/part-${i % 40}.ts` }),
      rows.gets(call, long, {
        type: "text",
        file: { filePath: `${CWD}/src/part-${i % 40}.ts`, content: long },
      }),
    ];
    written += writeSync(handle, piece.join(""));
  }
  written += writeSync(handle, rows.says("Done."));
  closeSync(handle);
  return written;
}

/** Lengths of tool results: most are short, a few are as long as whole files and logs. */
const LENGTHS = [400, 1_200, 9_000, 300, 2_500, 24_000, 800, 5_000] as const;
const WORDS = Array.from(
  { length: 6_000 },
  (_, i) => `word${i % 700} of a line;${i % 12 === 0 ? "\n" : ""}`,
).join(" ");

class Rows {
  readonly #id: string;
  readonly #agentId: string | null;
  #count = 0;
  #second: number;
  #last: string | null = null;

  constructor(id: string, agentId: string | null, second: number) {
    this.#id = id;
    this.#agentId = agentId;
    this.#second = second;
  }

  asks(content: string): string {
    return this.#row("user", { message: { role: "user", content } });
  }

  says(text: string, stop: string | null = "end_turn"): string {
    return this.#answer({ type: "text", text }, stop);
  }

  calls(name: string, id: string, input: Record<string, unknown>): string {
    return this.#answer({ type: "tool_use", id, name, input }, "tool_use");
  }

  gets(id: string, text: string, toolUseResult?: Record<string, unknown>): string {
    const content = [{ type: "tool_result", tool_use_id: id, content: [{ type: "text", text }] }];
    return this.#row("user", {
      message: { role: "user", content },
      ...(toolUseResult ? { toolUseResult } : {}),
    });
  }

  #answer(block: Record<string, unknown>, stop: string | null): string {
    const usage = {
      input_tokens: 3,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 10,
      output_tokens: 20,
    };
    const message = {
      id: `msg_${this.#count}`,
      type: "message",
      role: "assistant",
      model: "claude-opus-4-8",
    };
    return this.#row("assistant", { message: { ...message, content: [block], stop_reason: stop, usage } });
  }

  #row(type: string, fields: Record<string, unknown>): string {
    this.#count += 1;
    this.#second += 1;
    const uuid = `${this.#agentId ?? this.#id}-${this.#second}`;
    const base = {
      parentUuid: this.#last,
      isSidechain: this.#agentId !== null,
      ...(this.#agentId === null ? {} : { agentId: this.#agentId }),
      userType: "external",
      cwd: CWD,
      sessionId: this.#id,
      version: "2.1.223",
      gitBranch: "main",
      type,
      uuid,
      timestamp: new Date(Date.UTC(2026, 7, 1) + this.#second * 1_000).toISOString(),
    };
    this.#last = uuid;
    return `${JSON.stringify({ ...base, ...fields })}\n`;
  }
}
