import type { Entry } from "../../contract/index.ts";
import type { Paint } from "../terminal/paint.ts";
import { clip, clock, harmless, cleanLine } from "../terminal/text.ts";

/** Shows the author, then the text. A tool call takes one line. */
export function entryLines(entries: readonly Entry[], look: { columns: number; paint: Paint }): string[] {
  return entries.flatMap((entry) => {
    const who = `${WHO[entry.author]}${markOf(entry)}`;
    const head = `${clock(entry.at)}  ${who}`;
    const isShort =
      entry.kind === "toolCall" ||
      entry.kind === "toolResult" ||
      entry.kind === "thought" ||
      entry.kind === "notice";
    if (isShort) return [look.paint("soft", clip(`${head}  ${shortText(entry)}`, look.columns))];
    const text = harmless(entry.body.text).trimEnd().split("\n");
    return [
      `${look.paint("soft", clock(entry.at))}  ${look.paint("bold", who)}`,
      ...text.map((line) => `  ${line}`),
    ];
  });
}

function markOf({ body }: Entry): string {
  if (body.open === true) return " (still being written)";
  return body.cut === true ? " (cut off)" : "";
}

function shortText(entry: Entry): string {
  const { body } = entry;
  if (entry.kind === "toolCall") return cleanLine(`${body.tool ?? "tool"} ${body.command ?? body.text}`);
  if (entry.kind === "toolResult") {
    const exit =
      typeof body.exitCode === "number" ? ` (exit ${body.exitCode})` : body.ok === false ? " (failed)" : "";
    return cleanLine(`→ ${body.text}`) + exit;
  }
  return entry.kind === "thought" ? cleanLine(`thinks: ${body.text}`) : cleanLine(body.text);
}

export const WHO: Readonly<Record<Entry["author"], string>> = {
  person: "you",
  agent: "agent",
  tool: "tool",
  session: "session",
  daemon: "kinfold",
};
