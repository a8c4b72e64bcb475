import { isWithinShape } from "../json-shape.ts";

export type Fields = Record<string, unknown>;

/** Names that are understood, folded, each with the one it stands for. */
export type Names = ReadonlyMap<string, string>;

export function fields(own: readonly string[], aliases: Readonly<Record<string, string>> = {}): Names {
  const rows = [...own.map((name) => [name, name] as const), ...Object.entries(aliases)];
  return new Map(rows.map(([name, field]) => [fold(name), field]));
}

/** Keys are the same when they differ only in case and underscores. */
export function fold(key: string): string {
  return key.toLowerCase().replaceAll("_", "");
}

/** The same object under its own keys; what is unknown stays, for the contract to refuse. */
export function renamed(value: Fields, names: Names): Fields {
  const given = Object.entries(value).filter(([, item]) => item !== null && item !== undefined);
  return Object.fromEntries(given.map(([key, item]) => [names.get(fold(key)) ?? key, item]));
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

const NUMBERS = new Set(["until", "timeoutMs", "limit"]);
const STRUCTURES = new Set([
  "ids",
  "tasks",
  "chain",
  "parallel",
  "questions",
  "options",
  "one.options",
  "steps",
  "entities",
  "constraints",
  "payload",
  "limits",
  "answers",
  "tools",
]);

/** Some clients write numbers, lists and objects as text. */
export function parsed(field: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (NUMBERS.has(field)) return /^-?\d+$/.test(value) ? Number(value) : value;
  if (!STRUCTURES.has(field) || !/^\s*[[{]/.test(value) || !isWithinShape(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
