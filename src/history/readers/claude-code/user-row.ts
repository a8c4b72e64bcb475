import { asList, asObject, asText, type JsonObject } from "../../lines/value.ts";
import { textOfBlocks } from "../../lines/entry-body.ts";
import { beginsWithNotice, textInside } from "./task-notice.ts";

/** Kinds of rows with type `user`. Only a `prompt` asks the agent for something. */
export type UserKind =
  | "prompt"
  | "results"
  | "notice"
  | "summary"
  | "injected"
  | "interrupt"
  | "command"
  | "output";

export interface UserRow {
  readonly kind: UserKind;
  /** All text of the row, without tool results. */
  readonly text: string;
  readonly results: readonly JsonObject[];
  /** True if the row's origin is a notice, or if the row has no origin and its text begins with a notice. */
  readonly isNoticeCarrier: boolean;
}

/** Determines the row's kind from its fields. Uses the text's wording only if the fields do not decide. */
export function readUserRow(value: JsonObject): UserRow {
  const content = asObject(value["message"])?.["content"];
  const isResult = (block: unknown): boolean => asObject(block)?.["type"] === "tool_result";
  const results = asList(content).filter(isResult) as JsonObject[];
  const text = textOf(Array.isArray(content) ? content.filter((block) => !isResult(block)) : content);
  const origin = asText(asObject(value["origin"])?.["kind"]);
  // Versions that write no origin add words after the notice, so only the beginning of the text is checked.
  const isNotice = origin === null && value["isMeta"] !== true && beginsWithNotice(text);
  const row = { text, results, isNoticeCarrier: isNotice || origin === "task-notification" };
  return { ...row, kind: kindOf(value, row, origin) };
}

export const INTERRUPTS: ReadonlySet<string> = new Set([
  "[Request interrupted by user]",
  "[Request interrupted by user for tool use]",
]);

function kindOf(value: JsonObject, row: Omit<UserRow, "kind">, origin: string | null): UserKind {
  const text = row.text.trim();
  if (row.results.length > 0) return "results";
  if (row.isNoticeCarrier) return "notice";
  // The origin of commands and interrupts is also a person. They differ from prompts by their text: all of it
  // has Claude Code's fixed form.
  if (INTERRUPTS.has(text) && value["isMeta"] !== true) return "interrupt";
  if (origin === "human")
    return WHOLE_COMMAND.test(text) ? "command" : WHOLE_OUTPUT.test(text) ? "output" : "prompt";
  if (value["isCompactSummary"] === true) return "summary";
  if (value["isMeta"] === true) return "injected";
  if (/^<(command-(name|message)|bash-input)>/u.test(text)) return "command";
  if (/^<(local-command-std(out|err)|bash-std(out|err))>/u.test(text)) return "output";
  return "prompt";
}

const WHOLE_COMMAND =
  /^<(?:command-(?:name|message)|bash-input)>[\s\S]*<\/(?:command-(?:name|message|args)|bash-input)>$/u;
const WHOLE_OUTPUT =
  /^<(?:local-command|bash)-std(?:out|err)>[\s\S]*<\/(?:local-command|bash)-std(?:out|err)>$/u;

/** Images and similar blocks become placeholders. */
export function textOf(content: unknown): string {
  return textOfBlocks(content, (block, type) => {
    if (type === "image" || type === "document") return `[${type}]`;
    return type === "tool_reference" ? `[tool ${asText(block["tool_name"]) ?? ""}]` : null;
  });
}

/** Returns a command as it was typed: `/compact now`, `! ls`. */
export function commandText(text: string): string {
  const name = textInside(text, "command-name");
  if (name !== null)
    return [name, textInside(text, "command-args")].filter((part) => part !== null).join(" ");
  const shell = textInside(text, "bash-input");
  return shell === null ? text : `! ${shell}`;
}

/** Returns the output of a command without the tags around it. */
export function outputText(text: string): string {
  return text.replace(/<\/?(local-command|bash)-std(out|err)>/gu, "").trim();
}
