import type { Entry } from "../contract/index.ts";
import { oneLine, visible } from "../text/fence.ts";
import { count } from "../text/quantity.ts";

interface TranscriptHead {
  readonly title: string;
  readonly agent: string;
  readonly keptFrom?: number;
}

/** Renders a transcript for people. Nothing in an entry can pass for the heading of another one. */
export class TranscriptWriter {
  chars = 0;
  readonly #parts: string[] = [];
  readonly #write: (entry: Entry, agent: string) => string;
  readonly #agent: string;
  readonly #keptFrom: number;
  /**
   * Number of removed entries that the output does not mention yet. All entries before `keptFrom` are
   * removed, except inherited ones.
   */
  #missing: number;

  constructor(format: "text" | "markdown", head: TranscriptHead) {
    this.#write = format === "text" ? textEntry : markdownEntry;
    this.#agent = oneLine(head.agent);
    this.#keptFrom = this.#missing = head.keptFrom ?? 0;
    const title = oneLine(head.title, 200);
    this.#push(format === "text" ? `${title}\n${this.#agent}` : `# ${title}\n\nAgent: ${this.#agent}`);
  }

  /** Entries must come in the order of the transcript. */
  add(entry: Entry): void {
    if (entry.index < this.#keptFrom) this.#missing -= 1;
    else this.#sayRemoved();
    this.#push(this.#write(entry, this.#agent));
  }

  end(note: string | null = null): string {
    this.#sayRemoved();
    if (note !== null) this.#push(note);
    return `${this.#parts.join("\n\n")}\n`;
  }

  #sayRemoved(): void {
    const missing = this.#missing;
    this.#missing = 0;
    if (missing <= 0) return;
    const what = count(missing, "earlier entry was", "earlier entries were");
    this.#push(`(${what} removed, as the scope keeps no more.)`);
  }

  #push(part: string): void {
    this.chars += part.length;
    this.#parts.push(part);
  }
}

/** Indents every line of an entry, so that only headings start at the margin. */
function textEntry(entry: Entry, agent: string): string {
  const body = [bodyOf(entry), ...stepsOf(entry)].filter((part) => part !== "").join("\n");
  const indented = body.replace(/^(?=.)/gm, "  ");
  return indented === "" ? heading(entry, agent) : `${heading(entry, agent)}\n${indented}`;
}

/** Quotes the input and output of tools unchanged; escapes lines of prose that look like our headings. */
function markdownEntry(entry: Entry, agent: string): string {
  const body = bodyOf(entry);
  const quoted = entry.kind === "toolCall" || entry.kind === "toolResult";
  const prose = entry.kind === "thought" ? body.replace(/^/gm, "> ") : body.replace(/^(?=## \d+ · )/gm, "\\");
  const parts = [
    `## ${heading(entry, agent)}`,
    body === "" ? "" : quoted ? codeBlock(body) : prose,
    stepsOf(entry)
      .map((step) => `- ${step}`)
      .join("\n"),
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

/** "12 · codex · calls bash · 2026-11-15 14:02:03 UTC" */
function heading(entry: Entry, agent: string): string {
  const who = entry.author === "agent" || entry.author === "tool" ? agent : authors[entry.author];
  const what = whatOf(entry);
  return [
    String(entry.index),
    entry.isSubagent ? `${who} (sub-agent)` : who,
    ...(what === "" ? [] : [what]),
    ...(entry.body.open === true ? ["still being written"] : []),
    ...(entry.body.cut === true ? ["cut off"] : []),
    timeOf(entry.at),
  ].join(" · ");
}

function whatOf(entry: Entry): string {
  const { kind, body } = entry;
  if (kind === "text") return "";
  const tool = oneLine(body.tool ?? "a tool", 60);
  if (kind === "toolCall") return `calls ${tool}`;
  if (kind !== "toolResult") return kind;
  const exit = typeof body.exitCode === "number" ? `, exit ${body.exitCode}` : "";
  return `result of ${tool}${body.ok === false ? ", failed" : ""}${exit}`;
}

/** Returns "" for a plan with steps, because its text only repeats them. */
function bodyOf(entry: Entry): string {
  if ((entry.body.steps ?? []).length > 0) return "";
  const text = visible(entry.body.text);
  const command = visible(entry.body.command ?? "");
  const commandIsNew = entry.kind === "toolCall" && command !== "" && !text.includes(command);
  const shown = (commandIsNew ? `${text}\n$ ${command}` : text).replace(/^\n+/, "").trimEnd();
  const { more } = entry.body;
  return more === undefined ? shown : `${shown}\n${restOf(more)}`;
}

/** "(16777216 characters more in /home/…/messages/….txt; 7340032 after them were not kept)" */
function restOf({ path, chars, leftOutChars }: NonNullable<Entry["body"]["more"]>): string {
  const left = leftOutChars === 0 ? "" : `; ${leftOutChars} after them were not kept`;
  return `(${chars} characters more in ${oneLine(path, 1_000)}${left})`;
}

function stepsOf(entry: Entry): string[] {
  return (entry.body.steps ?? []).map((step) => `[${oneLine(step.status, 30)}] ${oneLine(step.title, 200)}`);
}

function codeBlock(text: string): string {
  let longest = 2;
  for (const [run] of text.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length);
  const ticks = "`".repeat(longest + 1);
  return `${ticks}text\n${text}\n${ticks}`;
}

function timeOf(at: number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "unknown time";
  return `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

const authors = { person: "person", session: "another session", daemon: "kinfold" } as const;
