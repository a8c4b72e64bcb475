export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(value: unknown): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns null for an empty text. */
export function asText(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** Returns the first of these fields that has a text. */
export function firstText(fields: JsonObject | null, ...names: string[]): string | null {
  return names.map((name) => asText(fields?.[name])).find((text) => text !== null) ?? null;
}

export function asNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Returns 0 for anything but a positive number. */
export function asCount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

/** Adds an item and drops the oldest items beyond `max`. Returns whether any was dropped. */
export function pushBounded<T>(list: T[], item: T, max: number): boolean {
  list.push(item);
  return list.length > max && list.splice(0, list.length - max).length > 0;
}
