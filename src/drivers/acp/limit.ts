import { describeError } from "./failure.ts";
import { type Fields, fieldsOf, isFields } from "../../text/fields.ts";

/** What the agent has reported about its vendor's limits so far. */
export interface LimitSeen {
  readonly isReached: boolean;
  readonly resetsAt: number | null;
}

/**
 * Returns when a vendor's usage limit ends, from the error's fields, the agent's earlier reports or the
 * error's text; null if the error is not a usage limit. A limit without a time is retried after `UNKNOWN_MS`.
 * The result is never in the past and at most `LONGEST_MS` ahead.
 */
export function limitedUntil(error: unknown, now = Date.now(), seen: LimitSeen | null = null): number | null {
  const data = fieldsOf(fieldsOf(error)["data"]);
  const inData = limitInFields(data, now);
  if (inData !== null) return bounded(inData, now);
  const text = plain(typeof error === "string" ? error : describeError(error));
  const isInWords = LIMIT.test(text) && !NO_LIMIT.test(text);
  if (!isInWords && !isNamed(data, seen)) return null;
  const reported = seen?.isReached === true ? seen.resetsAt : null;
  const until = reported ?? timeInWords(text, now) ?? seen?.resetsAt ?? null;
  if (until === null && NO_RESET.test(text)) return null;
  return bounded(until ?? now + UNKNOWN_MS, now);
}

/** Reads the usage limit that Claude's adapter sends with token counts; its errors do not contain it. */
export function limitSeen(meta: unknown): LimitSeen | null {
  const info = fieldsOf(meta)["_claude/rateLimit"];
  if (!isFields(info)) return null;
  const at = info["resetsAt"];
  const resetsAt = typeof at === "number" ? inMilliseconds(at) : null;
  return { isReached: info["status"] === "rejected", resetsAt };
}

function limitInFields(data: Fields, now: number): number | null {
  const at = data["resetsAt"] ?? data["resets_at"];
  if (typeof at === "number") return inMilliseconds(at);
  const seconds = data["resetsInSeconds"] ?? data["resets_in_seconds"];
  return typeof seconds === "number" ? now + seconds * 1000 : null;
}

function isNamed(data: Fields, seen: LimitSeen | null): boolean {
  if (data["codexErrorInfo"] === "usageLimitExceeded") return true;
  return data["errorKind"] === "rate_limit" && seen?.isReached === true;
}

/** Vendors send seconds; sim sends milliseconds. */
function inMilliseconds(at: number): number {
  return at < 100_000_000_000 ? at * 1000 : at;
}

function bounded(at: number, now: number): number {
  if (!(at <= now + LONGEST_MS)) return now + UNKNOWN_MS;
  return at >= now ? Math.ceil(at) : now + SOON_MS;
}

/** A month and a day: the longest period of any vendor's limit. */
const LONGEST_MS = 32 * 86_400_000;
const UNKNOWN_MS = 3_600_000;
/**
 * Delay before a retry if the reset time has passed. Vendors report times without seconds, so a time of day
 * that passed less than this long ago still means today, not tomorrow.
 */
const SOON_MS = 60_000;

/**
 * What vendors write. Codex: "You've hit your usage limit. …", Claude: "You've hit your session limit ·
 * resets 3pm" or "Claude AI usage limit reached|1794780000", Gemini: "Your quota will reset after 2h3m4s",
 * OpenCode: "5-hour usage limit reached. It will reset in 2 hours".
 */
const LIMIT = new RegExp(
  [
    String.raw`\busage limit\b`,
    String.raw`\bhit your [\w' -]{0,40}limit\b`,
    String.raw`\b(?:session|hour|daily|weekly|monthly|spend|credit|opus|sonnet|fable|plan) limit reached\b`,
    String.raw`\blimit will reset\b`,
    String.raw`\bquota will reset\b`,
    String.raw`\bexhausted your [\w-]{0,20} ?quota\b`,
  ].join("|"),
  "i",
);
/** Claude writes this when its server is overloaded. */
const NO_LIMIT = /\bnot your usage limit\b/i;
/** Waiting does not reset a spending limit, unless the error names a time. */
const NO_RESET = /\bspend limit\b|\bcredit limit\b/i;

function plain(text: string): string {
  return text.replaceAll(/[\u2018\u2019\u02bc]/g, "'").replaceAll(/\s+/g, " ");
}

function timeInWords(text: string, now: number): number | null {
  const epoch = /\|(\d{10,13})\b/.exec(text)?.[1];
  if (epoch !== undefined) return inMilliseconds(Number(epoch));
  const wait = WAIT.exec(text)?.[1];
  if (wait !== undefined) return now + durationOf(wait);
  const moment = MOMENT.exec(text)?.groups;
  return moment === undefined ? null : momentOf(moment, now);
}

const LEAD = String.raw`(?:try again|resets?|reset)`;
const COUNT = String.raw`\d{1,6}(?:\.\d{1,9})? ?(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|[dhms])(?![a-z])`;
const WAIT = new RegExp(`\\b${LEAD} (?:in|after) ((?:${COUNT}(?:, | and |,| )?){1,8})`, "i");

function durationOf(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?) ?([dhms])/gi)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit!.toLowerCase()] ?? 0), 0);
}

const UNITS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 };

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAY = String.raw`(?<month>${MONTHS.join("|")})[a-z]* (?<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?<year>\d{4}))?(?![\d:])`;
const CLOCK = String.raw`(?<hour>\d{1,2})(?::(?<minute>\d{2}))?(?::\d{2})?(?: ?(?<half>[ap])\.?m\b\.?|(?<=:\d\d))`;
const ZONE = String.raw`(?: ?\(?(?<zone>[A-Z][A-Za-z]+(?:/[\w+-]+){1,2}|UTC|GMT)\b)?`;
/** Matches "at 3:42 PM", "Nov 17th, 2026 3:42 PM", "Nov 17, 3pm (Europe/Berlin)", "Aug 8"; not a bare "3". */
const MOMENT = new RegExp(
  `\\b${LEAD} (?:at |on )?(?:${DAY}(?:,? (?:at )?${CLOCK})?|${CLOCK.replaceAll("(?<", "(?<only").replaceAll("(?<only=", "(?<=")})${ZONE}`,
  "i",
);

function momentOf(found: Record<string, string | undefined>, now: number): number | null {
  const zone = zoneOf(found["zone"]);
  const hour = found["hour"] ?? found["onlyhour"];
  const minute = found["minute"] ?? found["onlyminute"];
  const time = clockOf(hour, minute, found["half"] ?? found["onlyhalf"]);
  if (time === null) return null;
  const today = wallOf(now, zone);
  const { month: name, day, year } = found;
  if (name === undefined) {
    const at = [0, 1].map((days) => instantOf({ ...today, ...time, day: today.day + days }, zone));
    return at.find((one) => one + SOON_MS > now) ?? null;
  }
  const month = MONTHS.indexOf(name.slice(0, 3).toLowerCase());
  const date = { ...time, month, day: Number(day) };
  if (year !== undefined) return instantOf({ ...date, year: Number(year) }, zone);
  const at = [0, 1].map((years) => instantOf({ ...date, year: today.year + years }, zone));
  return at.find((one) => one + SOON_MS > now) ?? null;
}

interface Wall {
  readonly year: number;
  /** 0 is January. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
}

/** A date without a time means midnight. */
function clockOf(
  hour: string | undefined,
  minute: string | undefined,
  half: string | undefined,
): Pick<Wall, "hour" | "minute"> | null {
  const hours = Number(hour ?? 0);
  const minutes = Number(minute ?? 0);
  if (minutes > 59) return null;
  if (half === undefined) return hours > 23 ? null : { hour: hours, minute: minutes };
  if (hours < 1 || hours > 12) return null;
  return { hour: (hours % 12) + (half.toLowerCase() === "p" ? 12 : 0), minute: minutes };
}

/** Returns undefined, for the machine's time zone, if the name is missing or unknown. */
function zoneOf(name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

function wallOf(at: number, zone: string | undefined): Wall & { readonly second: number } {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const of = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  const [month, second] = [of("month") - 1, of("second")];
  return { year: of("year"), month, day: of("day"), hour: of("hour"), minute: of("minute"), second };
}

/**
 * `wall` is the local time read as UTC. The zone's offset at `wall` gives only an estimate, because daylight
 * saving time may begin or end between `wall` and the true instant. So the offset at the estimate is used.
 */
function instantOf({ year, month, day, hour, minute }: Wall, zone: string | undefined): number {
  const wall = Date.UTC(year, month, day, hour, minute);
  const offsetAt = (at: number): number => {
    const there = wallOf(at, zone);
    return (
      Date.UTC(there.year, there.month, there.day, there.hour, there.minute, there.second) -
      Math.floor(at / 1000) * 1000
    );
  };
  const near = wall - offsetAt(wall);
  return wall - offsetAt(near);
}
