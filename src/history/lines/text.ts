import { hash } from "node:crypto";
import { firstChars, folded, shortLine } from "../../text/fence.ts";
import { asText } from "./value.ts";

/** Cuts a text to `max` characters and says how much is missing. */
export function cut(text: string, max: number): string {
  const head = firstChars(text, max);
  if (head.length === text.length) return text;
  return `${head}\n[… ${text.length - head.length} more characters are in the agent's own file]`;
}

/** Prompts with the same key differ at most in white space and case. */
export function promptKey(prompt: string): string {
  return hash("sha1", folded(prompt).toLowerCase(), "base64url").slice(0, 16);
}

/** Returns a text from a file as one short line. */
export function shortText(value: unknown, max = 200): string | null {
  const text = asText(value);
  return text === null ? null : shortLine(text, max);
}

/** A version that cannot be read is less than any other. */
export function isVersionAtLeast(version: string | null, least: readonly number[]): boolean {
  const parts = (version ?? "").split(".").map((part) => Number.parseInt(part, 10));
  const at = least.findIndex((part, index) => part !== (parts[index] ?? 0));
  return at < 0 || (parts[at] ?? 0) > (least[at] as number);
}

/** Returns milliseconds since 1970 from an ISO time, seconds or milliseconds; null from anything else. */
export function timeOf(value: unknown): number | null {
  if (typeof value === "string") {
    const time = Date.parse(value);
    return Number.isNaN(time) ? null : time;
  }
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) return null;
  return value < 1e11 ? value * 1000 : value;
}

/** Limits the depth and length of a value from a file, so that it is safe to store and to serialise. */
export function bounded(value: unknown, textMax: number, depthMax = 24): unknown {
  if (typeof value === "string") return cut(value, textMax);
  if (value === null || typeof value !== "object") return value;
  if (depthMax === 0) return "[…]";
  if (Array.isArray(value)) {
    const kept = value.slice(0, LIST_MAX).map((item) => bounded(item, textMax, depthMax - 1));
    return value.length > LIST_MAX ? [...kept, `[… ${value.length - LIST_MAX} more]`] : kept;
  }
  const fields = Object.entries(value).slice(0, LIST_MAX);
  return Object.fromEntries(fields.map(([key, item]) => [key, bounded(item, textMax, depthMax - 1)]));
}

const LIST_MAX = 1000;
