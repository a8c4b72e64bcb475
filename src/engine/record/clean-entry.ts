import { setImmediate as others } from "node:timers/promises";
import { redactDeep } from "../../secrets/redact-deep.ts";
import { LiveRedactor } from "../../secrets/redact-live.ts";
import type { NewEntry } from "../../store/port/store.ts";

/** A shorter text is searched for secrets by the store, in one go. */
const LONG_CHARS = 16 * 1024;

/** The entry without its secrets. Long texts in it are searched in pieces, and everyone else has a turn in between. */
export async function cleanEntry(entry: NewEntry): Promise<NewEntry> {
  if (entry.isClean === true) return entry;
  const cleaned = new Map<string, string>();
  for (const text of longTextsIn(entry.body)) {
    if (!cleaned.has(text)) cleaned.set(text, await cleanText(text));
  }
  return cleaned.size === 0 ? entry : { ...entry, body: redactDeep(entry.body, cleaned), isClean: true };
}

async function cleanText(text: string): Promise<string> {
  const live = new LiveRedactor();
  let shown = "";
  for (let from = 0; from < text.length; from += LONG_CHARS) {
    shown += live.push(text.slice(from, from + LONG_CHARS));
    await others();
  }
  return shown + live.flush();
}

function* longTextsIn(value: unknown): Generator<string> {
  if (typeof value === "string" && value.length > LONG_CHARS) yield value;
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) yield* longTextsIn(part);
}
