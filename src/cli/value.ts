/** Parses `500ms`, `90s`, `30m`, `2h` or bare seconds into milliseconds; null if it is none of these. */
export function parseDuration(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h|d)?$/.exec(text.trim().toLowerCase());
  if (match === null) return null;
  return Math.round(Number(match[1]) * (UNITS_MS[match[2] ?? "s"] ?? 1000));
}

export function parseInteger(text: string): number | null {
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : null;
}

/** Parses `10`, `2.5` or `$10`; null if it is not an amount. */
export function parseNumber(text: string): number | null {
  const match = /^\$?(\d{1,9}(?:\.\d{1,4})?)$/.exec(text.trim());
  return match === null ? null : Number(match[1]);
}

const UNITS_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  sec: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
