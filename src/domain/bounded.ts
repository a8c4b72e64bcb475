import { boundedText } from "../text/fence.ts";

interface Left {
  chars: number;
  parts: number;
}

const LIMITS = { charsMax: 256 * 1024, partsMax: 10_000, depthMax: 32 };

/** Cuts a value to the limits, in bounded time. `chars` is the number of characters kept. */
export function boundedValue(value: unknown, limits = LIMITS): { value: unknown; chars: number } {
  const left = { chars: limits.charsMax, parts: limits.partsMax };
  const shown = bounded(value, left, limits.depthMax);
  return { value: shown, chars: limits.charsMax - left.chars };
}

const CUT = "… (cut)";
const NAME_CHARS_MAX = 1_000;

function bounded(value: unknown, left: Left, depth: number): unknown {
  left.parts -= 1;
  if (typeof value === "string") {
    const text = boundedText(value, Math.max(1, left.chars));
    left.chars = Math.max(0, left.chars - text.length);
    return text;
  }
  left.chars = Math.max(0, left.chars - 8);
  if (typeof value !== "object" || value === null) return value;
  if (depth <= 0 || left.parts <= 0 || left.chars <= 0) return CUT;
  return Array.isArray(value) ? boundedList(value, left, depth) : boundedRecord(value, left, depth);
}

function boundedList(list: readonly unknown[], left: Left, depth: number): unknown[] {
  const shown: unknown[] = [];
  for (const item of list) {
    if (left.parts <= 0 || left.chars <= 0) return [...shown, CUT];
    shown.push(bounded(item, left, depth - 1));
  }
  return shown;
}

function boundedRecord(record: object, left: Left, depth: number): object {
  const shown: [string, unknown][] = [];
  for (const key in record) {
    if (left.parts <= 0 || left.chars <= 0) {
      shown.push(["…", CUT]);
      break;
    }
    if (!Object.hasOwn(record, key)) continue;
    left.chars = Math.max(0, left.chars - key.length);
    shown.push([
      boundedText(key, NAME_CHARS_MAX),
      bounded((record as Record<string, unknown>)[key], left, depth - 1),
    ]);
  }
  return Object.fromEntries(shown);
}
