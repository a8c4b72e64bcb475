import { passwordsInAddresses } from "./secret-address.ts";
import { keyBlocksIn } from "./secret-block.ts";
import { spelledIn } from "./secret-command.ts";
import { namedIn } from "./secret-field.ts";
import { isSecretValue, nameSays } from "./secret-name.ts";
import { type Secret, shapesIn, Spans, type Tail } from "./secret-shape.ts";

/** Nothing shorter can hold a name with its value. */
const LENGTH_MIN = 7;
const MARK = /\[redacted: [a-z0-9 .]{1,32}\]/g;

/**
 * Text as it may be kept and shown: whatever looks like a secret, or stands behind the name of one, is
 * replaced by a mark that says what stood there. Takes time in proportion to the text; twice is as once.
 */
export function redact(text: string): string {
  if (text.length < LENGTH_MIN) return text;
  const { all } = secretsIn(text, null);
  return all.length === 0 ? text : shownPart(text, all, { from: 0, to: text.length });
}

/** A part of a text, with marks in place of its secrets. */
export function shownPart(
  text: string,
  secrets: readonly Secret[],
  part: { from: number; to: number },
): string {
  let shown = "";
  let at = part.from;
  for (const { start, end, kind } of secrets) {
    if (kind === null || end <= part.from) continue;
    if (start >= part.to) break;
    shown += text.slice(at, start) + markOf(kind);
    at = end;
  }
  return shown + text.slice(at, Math.max(at, part.to));
}

function markOf(kind: string): string {
  return `[redacted: ${kind}]`;
}

/** All secrets of a text, and the marks that stand in it already. `tail` is told what may still go on. */
export function secretsIn(text: string, tail: Tail | null): Spans {
  const known = new Spans([
    ...marksIn(text),
    ...keyBlocksIn(text, tail),
    ...shapesIn(text),
    ...passwordsInAddresses(text),
    ...spelledIn(text),
  ]);
  const named = namedIn(text, known, tail);
  return named.length === 0 ? known : new Spans([...named, ...known.all]);
}

/** Most texts have none, and finding that out must cost little: every string that is kept comes here. */
function marksIn(text: string): Secret[] {
  if (!text.includes("[redacted: ")) return [];
  const found = [...text.matchAll(MARK)];
  return found.map(({ index, 0: mark }) => ({ start: index, end: index + mark.length, kind: null }));
}

/**
 * The same for every string within a value; the key a string stands under is its name. What holds no
 * secret is returned as it is, not copied.
 */
export function redactDeep<T>(value: T): T {
  return deep(value, null) as T;
}

function deep(value: unknown, name: string | null): unknown {
  if (typeof value === "string") return named(value, name);
  if (Array.isArray(value)) return list(value, name);
  if (typeof value !== "object" || value === null) return value;
  return record(value as Record<string, unknown>);
}

const QUOTED = { quoted: true, spelled: false, next: "end" } as const;

/** A text that stands under a name, as in a record. */
export function redactNamed(name: string, text: string): string {
  return named(text, name);
}

function named(text: string, name: string | null): string {
  const says = name === null ? null : nameSays(name);
  if (says !== null && isSecretValue(says, text, QUOTED)) {
    const shown = redact(text);
    return /^\[redacted: [a-z0-9 .]{1,32}\]$/.test(shown) ? shown : markOf(says.kind);
  }
  return redact(name === null ? text : redactUnder(name, text));
}

/** Headers have values of several words: they are read as they would stand in a request. */
function redactUnder(name: string, text: string): string {
  if (!/(?:^|[-_])(?:authorization|cookie)$/i.test(name)) return text;
  const line = `${name}: ${text}`;
  return redact(line).slice(name.length + 2);
}

/** In a list of arguments a flag names what follows it. */
function list(values: readonly unknown[], name: string | null): readonly unknown[] {
  let isChanged = false;
  const shown = values.map((value, i) => {
    const before: unknown = i === 0 ? null : values[i - 1];
    const flag = typeof before === "string" && /^--?[A-Za-z][\w-]{1,64}$/.test(before) ? before : name;
    const after = deep(value, flag);
    isChanged ||= after !== value;
    return after;
  });
  return isChanged ? shown : values;
}

function record(value: Record<string, unknown>): Record<string, unknown> {
  let copy: Record<string, unknown> | null = null;
  // `{ name: "API_KEY", value: "…" }` is how protocols write an environment and headers.
  const pair = typeof value["name"] === "string" ? value["name"] : value["key"];
  for (const key of Object.keys(value)) {
    const name = key === "value" && typeof pair === "string" ? pair : key;
    const after = deep(value[key], name);
    if (after === value[key]) continue;
    copy ??= { ...value };
    copy[key] = after;
  }
  return copy ?? value;
}
