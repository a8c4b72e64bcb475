import { basename } from "node:path";
import type { Document, LineCounter } from "yaml";
import type { Permission, Profile, ProfileProblem } from "../contract/index.ts";
import { ProfileHead } from "../contract/profile.ts";
import { firstChars, visible } from "../text/fence.ts";
import { nearest } from "../text/nearest.ts";
import { yaml } from "./yaml.ts";

/** A problem's `names` are the profiles that the file may have been meant to define. */
export type ParsedProfile = { readonly profile: Profile } | { readonly problem: ProfileProblem };

/** Claude Code's names for its modes, so that its agent files can be used unchanged. */
const CLAUDE_MODES: Readonly<Record<string, Permission>> = {
  plan: "read-only",
  default: "ask",
  acceptEdits: "workspace",
  bypassPermissions: "full",
};

/** Parses a file again only if its text has changed, because every spawn loads the profiles. */
export function parseProfile(file: string, text: string, from: string): ParsedProfile {
  const before = known.get(file);
  if (before?.text === text && before.from === from) return before.parsed;
  const parsed = parse(file, text, from);
  known.set(file, { text, from, parsed });
  return parsed;
}

const known = new Map<string, { text: string; from: string; parsed: ParsedProfile }>();

/** The problem of a file of which only the name is known. */
export function problemOfFile(file: string, text: string): ProfileProblem {
  return { names: [basename(file, ".md")], file, line: null, text: shown(text) };
}

function parse(file: string, text: string, from: string): ParsedProfile {
  const match = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$/.exec(text);
  const names = guessedNames(file, text);
  if (match === null)
    return bad(file, names, [1, "it must begin with front matter between two lines of ---"]);
  const lines = new (yaml().LineCounter)();
  const document = yaml().parseDocument(match[1] ?? "", { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) {
    const line = lines.linePos(error.pos[0]).line + 1;
    return bad(file, names, [line, `it is not valid YAML: ${error.message.split("\n", 1)[0] ?? ""}`]);
  }
  let data: unknown;
  try {
    data = document.toJS();
  } catch (thrown) {
    return bad(file, names, [2, `it is not valid YAML: ${thrown instanceof Error ? thrown.message : ""}`]);
  }
  if (!yaml().isMap(document.contents)) return bad(file, names, [2, "it must be `key: value` lines"]);
  const result = ProfileHead.safeParse(data);
  if (result.success) return { profile: profileOf(result.data, (match[2] ?? "").trim(), from) };
  const [issue, ...others] = result.error.issues;
  const { line, text: what } = explainIssue(issue as Issue, { document, lines, data });
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return bad(file, certainNames(file, data), [line, `${what}${more}`]);
}

function bad(file: string, names: readonly string[], [line, text]: [number, string]): ParsedProfile {
  return { problem: { names: [...names], file, line, text: shown(text) } };
}

/** The front matter cannot be parsed, so both the file's name and what looks like its `name` line count. */
function guessedNames(file: string, text: string): string[] {
  const line = /^name[ \t]*:[ \t]*["']?([A-Za-z][A-Za-z0-9_-]*)/m.exec(text)?.[1];
  return [...new Set([...(line === undefined ? [] : [line]), basename(file, ".md")])];
}

function certainNames(file: string, data: unknown): string[] {
  const name = ProfileHead.shape.name.safeParse((data as Record<string, unknown>)["name"]);
  return [name.success ? name.data : basename(file, ".md")];
}

/** The part of a zod issue that is used here. Declared here, because this folder may not import zod. */
interface Issue {
  readonly code: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly values?: readonly unknown[];
  readonly expected?: string;
}

interface Head {
  readonly document: Document;
  readonly lines: LineCounter;
  readonly data: unknown;
}

/** Says which line is wrong and what is allowed there. */
function explainIssue(issue: Issue, head: Head): { line: number; text: string } {
  const [unknown] = issue.keys ?? [];
  const path = unknown === undefined ? issue.path : [...issue.path, unknown];
  const key = shownKey(path.join("."));
  return { line: lineOf(path, head), text: `"${key}" ${complaint(issue, { unknown, head })}` };
}

function complaint(issue: Issue, { unknown, head }: { unknown: string | undefined; head: Head }): string {
  if (unknown !== undefined) {
    const allowed = keysAt(issue.path);
    const [near] = nearest(unknown, allowed, 1);
    const meant = near === undefined ? "" : `; did you mean "${near}"?`;
    return `is not a key here${meant === "" ? "." : meant} Allowed: ${allowed.join(", ")}`;
  }
  const value = valueAt(head.data, issue.path);
  if (value === undefined) return "is missing; a profile needs a name and a description";
  if (value === null) return "is empty; give it a value, or remove the line";
  if (issue.values !== undefined) return `must be one of: ${issue.values.join(", ")}`;
  if (issue.code === "invalid_union") return "must be a text or a list of texts";
  if (issue.code === "invalid_type") return `must be of the type ${issue.expected ?? "that is documented"}`;
  return `is not valid: ${issue.message}`;
}

/** Adds one line for the `---` above the front matter. */
function lineOf(path: readonly PropertyKey[], { document, lines }: Head): number {
  for (let depth = path.length; depth > 0; depth--) {
    const map = document.getIn(path.slice(0, depth - 1), true);
    if (!yaml().isMap(map)) continue;
    const pair = map.items.find(({ key }) => yaml().isScalar(key) && String(key.value) === path[depth - 1]);
    const key = pair?.key;
    if (yaml().isScalar(key) && key.range) return lines.linePos(key.range[0]).line + 1;
  }
  return 1;
}

interface Shaped {
  readonly def: { readonly innerType?: Shaped };
  readonly shape?: Readonly<Record<string, Shaped>>;
}

function keysAt(path: readonly PropertyKey[]): string[] {
  let at: Shaped | undefined = ProfileHead as unknown as Shaped;
  for (const part of path) at = withoutWrapper(at)?.shape?.[String(part)];
  return Object.keys(withoutWrapper(at)?.shape ?? {});
}

function withoutWrapper(schema: Shaped | undefined): Shaped | undefined {
  return schema?.def.innerType === undefined ? schema : withoutWrapper(schema.def.innerType);
}

function valueAt(data: unknown, path: readonly PropertyKey[]): unknown {
  let at = data;
  for (const part of path) at = (at as Record<PropertyKey, unknown> | null | undefined)?.[part];
  return at;
}

function shown(text: string): string {
  return firstChars(visible(text).replaceAll(/\s+/g, " "), TEXT_MAX);
}

function shownKey(key: string): string {
  return firstChars(key, KEY_MAX);
}

const TEXT_MAX = 600;
const KEY_MAX = 80;

function profileOf(front: ProfileHead, instructions: string, from: string): Profile {
  const mode = front.permissionMode === undefined ? null : (CLAUDE_MODES[front.permissionMode] ?? null);
  return {
    name: front.name,
    description: front.description,
    instructions,
    agent: front.agent ?? null,
    model: front.model ?? null,
    permission: front.permission ?? mode,
    tools: listOf(front.tools),
    disallowedTools: listOf(front.disallowedTools) ?? [],
    mcp: listOf(front.mcp),
    limits: front.limits ?? {},
    inherit: front.inherit ?? null,
    callback: front.callback ?? {},
    accepts: listOf(front.accepts) ?? [],
    maxTurns: front.maxTurns ?? null,
    from,
  };
}

function listOf(value: string | string[] | undefined): string[] | null {
  if (value === undefined) return null;
  const items = typeof value === "string" ? value.split(",") : value;
  return items.map((item) => item.trim()).filter((item) => item !== "");
}
