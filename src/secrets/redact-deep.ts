import { LEADS, spelledIn } from "./detect/command.ts";
import { hasFigure, isSecretValue, nameSays } from "./detect/name.ts";
import { markOf, redact } from "./redact.ts";

/**
 * Redacts every string within a value. A string's key counts as its name, and keys are redacted too. A value
 * without secrets is not copied. Levels that are nested too deep are left out, because later code would
 * overflow its stack.
 */
export function redactDeep<T>(value: T, clean: Clean = redact): T {
  return deep(value, null, { levels: DEPTH_MAX, clean }) as T;
}

type Clean = (text: string) => string;

interface Walk {
  readonly levels: number;
  readonly clean: Clean;
}

const DEPTH_MAX = 200;
const TOO_DEEP = "[nested too deep to be kept]";

function deep(value: unknown, name: string | null, { levels, clean }: Walk): unknown {
  if (typeof value === "string") return named(value, name, clean);
  if (typeof value === "number") return number(value, name);
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return TOO_DEEP;
  const within = { levels: levels - 1, clean };
  if (Array.isArray(value)) return list(value, name, within);
  return record(value as Record<string, unknown>, name, within);
}

const QUOTED = { quoted: true, spelled: false, next: "end" } as const;

export function redactNamed(name: string, text: string): string {
  return named(text, name, redact);
}

function named(text: string, name: string | null, clean: Clean): string {
  const says = name === null ? null : nameSays(name);
  if (says !== null && isSecretValue(says, text, QUOTED)) {
    const shown = clean(text);
    return /^\[redacted: [a-z0-9 .]{1,32}\]$/.test(shown) ? shown : markOf(says.kind);
  }
  return clean(name === null ? text : redactUnder(name, text, clean));
}

/** A header's value can have several words, so name and value are redacted as one line, `name: value`. */
function redactUnder(name: string, text: string, clean: Clean): string {
  if (!HEADER.test(name)) return text;
  const line = `${name}: ${text}`;
  return clean(line).slice(name.length + 2);
}

/** A password may be a number, but a "token" that is a number is a count. */
function number(value: number, name: string | null): unknown {
  if (name === null || (value > -1_000 && value < 1_000)) return value;
  const says = nameSays(name);
  return says?.sure === "secret" ? markOf(says.kind) : value;
}

/** In a list of arguments, a flag names the next item; in a list of headers, a header's name does. */
function list(values: readonly unknown[], name: string | null, walk: Walk): readonly unknown[] {
  let isChanged = false;
  const shown = commandLine(values).map((value, i) => {
    const before: unknown = i === 0 ? null : values[i - 1];
    const under = typeof before === "string" ? (nameBefore(before, value) ?? name) : name;
    const after = deep(value, under, walk);
    isChanged ||= after !== values[i];
    return after;
  });
  return isChanged ? shown : values;
}

const FLAG = /^--?[A-Za-z][\w-]{1,64}$/;
const NAME = /^[A-Za-z][\w.-]{2,64}$/;
const HEADER = /(?:^|[-_])(?:authorization|cookie)$/i;

function nameBefore(before: string, value: unknown): string | null {
  const isFlag = FLAG.test(before);
  if (!isFlag && !NAME.test(before)) return null;
  if (nameSays(before) === null && !HEADER.test(before)) return null;
  // Without a flag, the list may contain only names. So after a name, only text with a digit is a value.
  const isValue = typeof value === "string" && hasFigure(value) && !/^[A-Z][A-Z0-9]*_[A-Z0-9_]*$/.test(value);
  return isFlag || isValue ? before : null;
}

/** A command's name is looked for in this many items at the start of an argument list. */
const COMMAND_WORDS = 4;
const ARGUMENTS_MAX = 64;

/** Redacts arguments such as `["mysql", "-p…"]` as if they were one command line. */
function commandLine(values: readonly unknown[]): readonly unknown[] {
  const isCommand = values
    .slice(0, COMMAND_WORDS)
    .some((word) => typeof word === "string" && word.length <= ARGUMENTS_MAX && LEADS.test(word));
  if (!isCommand) return values;
  const line = values.slice(0, ARGUMENTS_MAX).map(String);
  const secrets = spelledIn(line.join(" "));
  let at = 0;
  return values.map((value, i) => {
    const start = at;
    const end = start + (line[i] ?? "").length;
    at = end + 1;
    const secret = secrets.find((each) => each.start >= start && each.start < end);
    if (secret?.kind == null || typeof value !== "string") return value;
    return value.slice(0, secret.start - start) + markOf(secret.kind);
  });
}

/** A key this short, of these characters, cannot hold a secret. */
const PLAIN_KEY = /^[\w$-]{0,14}$/;
/** Protocols write environments and headers as `{ name: "API_KEY", value: "…" }`. */
const PAIR_NAMES = ["name", "key", "variable", "k"] as const;
const PAIR_VALUE = /^(?:value|val|v|stringValue|plaintext|raw)$/;

function record(value: Record<string, unknown>, name: string | null, walk: Walk): Record<string, unknown> {
  const keys = Object.keys(value);
  // The record is copied only when the first secret is found, because most records have none.
  let shown: [string, unknown][] | null = null;
  for (const [i, key] of keys.entries()) {
    const under = PAIR_VALUE.test(key) ? (pairName(value) ?? name ?? key) : key;
    const after = deep(value[key], under, walk);
    const shownKey = PLAIN_KEY.test(key) ? key : walk.clean(key);
    if (after !== value[key] || shownKey !== key) {
      shown ??= keys.slice(0, i).map((each) => [each, value[each]]);
    }
    shown?.push([shownKey, after]);
  }
  return shown === null ? value : Object.fromEntries(apart(shown));
}

function pairName(value: Record<string, unknown>): string | null {
  return PAIR_NAMES.map((key) => value[key]).find((name) => typeof name === "string") ?? null;
}

/** Makes equal keys distinct, because two keys may have been redacted to the same text. */
function apart(entries: readonly [string, unknown][]): [string, unknown][] {
  const seen = new Set<string>();
  const used = new Map<string, number>();
  return entries.map(([key, value]) => {
    let other = key;
    let n = used.get(key) ?? 1;
    while (seen.has(other)) {
      n += 1;
      other = `${key} (${n})`;
    }
    used.set(key, n);
    seen.add(other);
    return [other, value];
  });
}
