export const DATE_FORMS =
  "Write 2026-03-31, 2026-03-31T14:00, today, yesterday, or how long ago: 30m, 12h, 2d, 3w.";

const UNITS: Readonly<Record<string, number>> = {
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};
/** The maximum for "… ago". No transcript is older, and the result is in the range of a JavaScript date. */
const AGO_MAX_MS = 200 * 366 * 86_400_000;

/** Parses a time as a person writes it, in the daemon's time zone. Returns null if it cannot. */
export function dateOf(text: string, now: number): number | null {
  const value = text.trim().toLowerCase();
  if (value === "now") return now;
  if (value === "today") return startOfDay(now, 0);
  if (value === "yesterday") return startOfDay(now, -1);
  const ago = /^(\d{1,9})\s?(m|min|h|d|w)(?:\s?ago)?$/.exec(value);
  if (ago !== null) {
    const ms = Number(ago[1]) * (UNITS[ago[2] ?? ""] ?? Number.NaN);
    return ms <= AGO_MAX_MS ? now - ms : null;
  }
  return calendarDate(value);
}

function startOfDay(now: number, days: number): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime();
}

const CALENDAR =
  /^(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[t ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(z|[+-]\d{2}:?\d{2})?)?)?)?$/;

function calendarDate(value: string): number | null {
  const found = CALENDAR.exec(value);
  if (found === null) return null;
  const [year, month = 1, day = 1, hour = 0, minute = 0, second = 0] = found
    .slice(1, 7)
    .map((part) => (part === undefined ? undefined : Number(part)));
  const date = new Date(year ?? 0, month - 1, day, hour, minute, second);
  // JavaScript silently turns a date that does not exist (2026-02-31) into another day.
  const isReal =
    date.getMonth() === month - 1 && date.getDate() === day && hour < 24 && minute < 60 && second < 60;
  if (!isReal || (year ?? 0) < 1970) return null;
  const zone = found[7];
  if (zone === undefined) return date.getTime();
  return Date.UTC(year ?? 0, month - 1, day, hour, minute, second) - zoneMs(zone);
}

function zoneMs(zone: string): number {
  const found = /^([+-])(\d{2}):?(\d{2})$/.exec(zone);
  if (found === null) return 0;
  const ms = (Number(found[2]) * 60 + Number(found[3])) * 60_000;
  return found[1] === "-" ? -ms : ms;
}
