import { boundedText } from "../../text/fence.ts";
/** The sim agent's script language, shared by the sim process and the fake driver. */
export type Step =
  | {
      readonly word: "say" | "think" | "permit" | "review" | "fail" | "run" | "recall" | "compact";
      readonly text: string;
    }
  | { readonly word: "sleep" | "background"; readonly ms: number }
  | { readonly word: "tool"; readonly name: string; readonly input: unknown; readonly as: string | null }
  | { readonly word: "ask"; readonly text: string; readonly options: readonly string[] }
  | { readonly word: "plan"; readonly titles: readonly string[] }
  | { readonly word: "write"; readonly path: string; readonly text: string }
  | { readonly word: "usage"; readonly input: number; readonly output: number; readonly usd: number }
  | { readonly word: "limit"; readonly seconds: number }
  | { readonly word: "flood"; readonly megabytes: number }
  | { readonly word: "hang" }
  | { readonly word: "crash" | "deaf" | "half" }
  | { readonly word: "unknown"; readonly problem: string };

/**
 * Translates a prompt into steps. If its first line begins with `sim>`, the lines that do are a script; a
 * prompt that begins with a trigger's marker is acknowledged; any other prompt is echoed.
 */
export function readPrompt(text: string): readonly Step[] {
  const lines = withoutPromptContext(text).split("\n");
  if (lines[0]?.startsWith("<!-- trigger:")) {
    const first = withoutMarks(lines).find((line) => line.trim() !== "") ?? "";
    return [{ word: "say", text: `sim: noted ${boundedText(first.trim(), NOTE_LENGTH)}` }];
  }
  const body = withoutMarks(lines).join("\n").trim();
  if (!body.startsWith(PREFIX)) return [{ word: "say", text: `sim: ${boundedText(body, ECHO_LENGTH)}` }];
  return body
    .split("\n")
    .filter((line) => line.startsWith(PREFIX))
    .map((line) => readStep(line.slice(PREFIX.length).trim()));
}

/** Returns the context of earlier conversations that a prompt carries; empty if there is none. */
export function promptContextIn(text: string): string {
  const at = OPENING.exec(text)?.index;
  return at === undefined ? "" : text.slice(at);
}

/** Replaces `${name.path}` with the value bound to the name; leaves unbound references unchanged. */
export function fillIn(text: string, bound: ReadonlyMap<string, unknown>): string {
  return text.replace(REFERENCE, (whole, name: string, path: string | undefined) => {
    const value = lookUp(bound, name, path);
    if (value === undefined) return whole;
    return typeof value === "string" ? value : JSON.stringify(value);
  });
}

/** Like `fillIn`, inside a JSON value; a string that is a single reference becomes the value itself. */
export function fillInValue(value: unknown, bound: ReadonlyMap<string, unknown>): unknown {
  if (typeof value === "string") {
    const whole = WHOLE_REFERENCE.exec(value);
    const found = whole ? lookUp(bound, whole[1] as string, whole[2]) : undefined;
    return found === undefined ? fillIn(value, bound) : found;
  }
  if (Array.isArray(value)) return value.map((item) => fillInValue(item, bound));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillInValue(item, bound)]));
}

/** Returns the value to bind for a tool's reply: its JSON, the JSON of its first line, or its text. */
export function replyValue(text: string): unknown {
  for (const candidate of [text, text.split("\n")[0] ?? ""]) {
    const value = parseObject(candidate);
    if (value !== undefined) return value;
  }
  return { text };
}

const PREFIX = "sim>";
const NOTE_LENGTH = 120;
const ECHO_LENGTH = 2_000;
const MARK = /^<!-- (message|trigger):\S+ -->$/;
const OPENING = /^## (?:Inherited from Parent Session|From Your Own Earlier Conversation)$/m;
const REFERENCE = /\$\{(\w+)((?:\.\w+)*)\}/g;
const WHOLE_REFERENCE = /^\$\{(\w+)((?:\.\w+)*)\}$/;

function withoutPromptContext(text: string): string {
  const context = promptContextIn(text);
  return context === "" ? text : text.slice(0, -context.length);
}

function withoutMarks(lines: readonly string[]): string[] {
  return lines.filter((line) => !MARK.test(line.trim()));
}

function readStep(line: string): Step {
  const [, word = "", rest = ""] = /^(\S+)\s*(.*)$/.exec(line) ?? [];
  return (
    READERS[word]?.(rest) ?? { word: "unknown", problem: `sim does not know "${boundedText(line, 80)}"` }
  );
}

const READERS: Readonly<Record<string, (rest: string) => Step | null>> = {
  say: (text) => ({ word: "say", text }),
  think: (text) => ({ word: "think", text }),
  permit: (text) => ({ word: "permit", text }),
  review: (text) => ({ word: "review", text }),
  fail: (text) => ({ word: "fail", text: text || "failed as told" }),
  run: (text) => ({ word: "run", text }),
  recall: (text) => (text === "" ? null : { word: "recall", text }),
  compact: (text) => (text === "" ? null : { word: "compact", text }),
  sleep: (rest) => withNumber(rest, (ms) => ({ word: "sleep", ms })),
  background: (rest) => withNumber(rest, (ms) => ({ word: "background", ms })),
  limit: (rest) => withNumber(rest, (seconds) => ({ word: "limit", seconds })),
  flood: (rest) => withNumber(rest, (megabytes) => ({ word: "flood", megabytes })),
  tool: readTool,
  ask: (rest) => {
    const [text = "", ...options] = rest.split("|").map((part) => part.trim());
    return { word: "ask", text, options };
  },
  plan: (rest) => ({ word: "plan", titles: rest.split(";").map((title) => title.trim()) }),
  write: (rest) => {
    const [, path = "", text = ""] = /^(\S+)\s?(.*)$/.exec(rest) ?? [];
    return path === "" ? null : { word: "write", path, text };
  },
  usage: (rest) => {
    const [input = 0, output = 0, usd = 0] = rest.split(/\s+/).map(Number);
    return [input, output, usd].every(Number.isFinite) ? { word: "usage", input, output, usd } : null;
  },
  crash: () => ({ word: "crash" }),
  hang: () => ({ word: "hang" }),
  deaf: () => ({ word: "deaf" }),
  "ignore-cancel": () => ({ word: "deaf" }),
  half: () => ({ word: "half" }),
};

function withNumber(rest: string, make: (value: number) => Step): Step | null {
  const value = Number(rest);
  return rest !== "" && Number.isFinite(value) && value >= 0 ? make(value) : null;
}

function readTool(rest: string): Step | null {
  const [, name, body = "", as = null] = /^(\S+)\s*(.*?)(?:\s+as\s+(\w+))?\s*$/.exec(rest) ?? [];
  if (name === undefined) return null;
  const input = body === "" ? {} : parseObject(body);
  if (input === undefined)
    return { word: "unknown", problem: `the input of tool ${name} is not a JSON object` };
  return { word: "tool", name, input, as };
}

function parseObject(text: string): unknown {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function lookUp(bound: ReadonlyMap<string, unknown>, name: string, path: string | undefined): unknown {
  let value = bound.get(name);
  for (const key of (path ?? "").split(".").filter(Boolean)) {
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  }
  return value;
}
