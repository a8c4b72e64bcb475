import type { z } from "zod";
import { Refusal } from "../contract/refusal.ts";
import { nearest } from "../text/nearest.ts";

export interface Naming {
  /** Maps a field to the name that the caller's surface uses. Without it, the names are the same. */
  readonly nameOf?: (field: string) => string;
}

/** Parses strictly. A refusal names the field and what is allowed. */
export function parseInput<S extends z.ZodObject>(schema: S, raw: unknown, naming: Naming = {}): z.output<S> {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const nameOf = naming.nameOf ?? ((field: string) => field);
  const issues = parsed.error.issues.map((issue) => explain(issue, { raw, schema, nameOf }));
  // A misspelt field is often the reason why another one is missing, so it is named first.
  const first = issues.find((issue) => issue.isUnknown) ?? issues[0];
  throw new Refusal("invalid_input", first?.message ?? "The input does not fit.", {
    field: first?.field ?? null,
    issues: issues.map(({ field, message }) => ({ field, message })),
  });
}

export function unknownField(field: string, allowed: readonly string[], inside = ""): Refusal {
  const shown = oneWord(`${inside}${field}`);
  const [near = null] = nearest(`${inside}${field}`, allowed, 1);
  const hint = near === null ? "" : `; did you mean "${near}"?`;
  const list = allowed.length === 0 ? "It takes no fields." : `Allowed: ${allowed.join(", ")}.`;
  return new Refusal("invalid_input", `"${shown}" is not a field here${hint || "."} ${list}`, {
    field: shown,
    nearest: near,
    allowed,
  });
}

interface Explained {
  readonly field: string;
  readonly message: string;
  readonly isUnknown: boolean;
}

interface Context {
  readonly raw: unknown;
  readonly schema: z.ZodObject;
  readonly nameOf: (field: string) => string;
}

type Issue = z.core.$ZodIssue;

function explain(issue: Issue, context: Context): Explained {
  const path = issue.path.map(String);
  const field = [context.nameOf(path[0] ?? ""), ...path.slice(1)].join(".");
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    const refusal = unknownField(key, keysAt(context, path), field === "" ? "" : `${field}.`);
    return { field: oneWord(key), message: refusal.message, isUnknown: true };
  }
  if (field === "") return { field, message: "The input must be a JSON object.", isUnknown: false };
  if (valueAt(context.raw, path) === undefined) {
    return { field, message: `${field} is missing; it must be ${allowedBy(issue)}.`, isUnknown: false };
  }
  return { field, message: `${field} must be ${allowedBy(issue)}.`, isUnknown: false };
}

/** Describes what a field accepts, in words that fit after "must be". */
function allowedBy(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return kinds[issue.expected] ?? `of type ${issue.expected}`;
    case "invalid_value":
      return listed(issue.values.map((value) => JSON.stringify(value)));
    case "too_big":
      return `at most ${issue.maximum}${unit(issue.origin, issue.maximum)}`;
    case "too_small":
      return issue.inclusive === false
        ? `more than ${issue.minimum}`
        : `at least ${issue.minimum}${unit(issue.origin, issue.minimum)}`;
    case "invalid_format":
      return issue.format === "regex" ? `made of ${issue.message}` : `a valid ${issue.format}`;
    case "invalid_union":
      return listed([...new Set(issue.errors.flatMap((branch) => branch.map(branchAllows)))]);
    default:
      return issue.message.replace(/\.$/, "");
  }
}

function branchAllows(issue: Issue): string {
  const inner = issue.path.map(String).join(".");
  const allowed = issue.code === "unrecognized_keys" ? "without unknown fields" : allowedBy(issue);
  return inner === "" ? allowed : `an object whose ${inner} is ${allowed}`;
}

const kinds: Record<string, string> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};

const units: Record<string, string> = { string: "character", array: "item" };

function unit(origin: string, count: number | bigint): string {
  const word = units[origin];
  return word === undefined ? "" : ` ${word}${Number(count) === 1 ? "" : "s"} long`;
}

function listed(words: readonly string[]): string {
  if (words.length <= 1) return words[0] ?? "something else";
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** Returns the fields allowed at a path, each as a full path in the caller's names. */
function keysAt(context: Context, path: readonly string[]): string[] {
  let schema: unknown = context.schema;
  for (const step of path) schema = /^\d+$/.test(step) ? elementOf(schema) : shapeOf(schema)[step];
  const [first = "", ...rest] = path;
  const keys = Object.keys(shapeOf(schema));
  return path.length === 0
    ? keys.map(context.nameOf)
    : keys.map((key) => [context.nameOf(first), ...rest, key].join("."));
}

function elementOf(schema: unknown): unknown {
  const { def } = (schema ?? {}) as { def?: { element?: unknown; innerType?: unknown } };
  return def?.element ?? (def?.innerType === undefined ? undefined : elementOf(def.innerType));
}

/** Returns the shape of an object schema, also if it is optional or one branch of a union. */
function shapeOf(schema: unknown): Record<string, unknown> {
  const { shape, def } = (schema ?? {}) as {
    shape?: Record<string, unknown>;
    def?: { innerType?: unknown; options?: readonly unknown[] };
  };
  if (shape !== undefined) return shape;
  if (def?.innerType !== undefined) return shapeOf(def.innerType);
  return (def?.options ?? []).map(shapeOf).find((each) => Object.keys(each).length > 0) ?? {};
}

function valueAt(raw: unknown, path: readonly string[]): unknown {
  let value = raw;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** Makes a caller's text fit into our sentence: one line, short, printable. */
function oneWord(text: string): string {
  return text.replaceAll(/[^\x20-\x7e\p{L}\p{N}]/gu, " ").slice(0, 60);
}
