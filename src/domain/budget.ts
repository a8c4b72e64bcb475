import type { Budget, Price, Usage } from "../contract/index.ts";
import { count, tokens } from "../text/quantity.ts";
import { NO_USAGE } from "../contract/no-usage.ts";

/** An amount of money and tokens. A unit is null if no budget limits it. */
export interface Amount {
  readonly tokens: number | null;
  readonly usd: number | null;
}

/** A budget that a turn spends from: its session's or an ancestor's. */
export interface Account {
  readonly isOwn: boolean;
  readonly budget: Budget;
  /** Used by settled turns of the budget's session and of its descendants. */
  readonly spent: { readonly tokens: number; readonly usd: number };
  /** Reserved by running turns of the budget's session and of its descendants, except the current turn. */
  readonly reserved: { readonly tokens: number; readonly usd: number };
  /** Turns begun by the budget's session and its descendants, except the current one. */
  readonly turns: number;
}

/** An exhausted budget. `reason` is text for a person. */
export interface Exhausted {
  readonly unit: "usd" | "tokens" | "turns" | "minutes";
  readonly limit: number;
  readonly reason: string;
}

export type Reservation =
  | { readonly ok: true; readonly reserved: Amount }
  | { readonly ok: false; readonly exhausted: Exhausted };

type Metered = "usd" | "tokens";
const METERED: readonly Metered[] = ["usd", "tokens"];

/** A turn reserves this multiple of the largest turn so far. */
const ROOM = 1.5;
/** A reservation is raised to at least this multiple of what the turn has used. */
const STEP = 1.1;

/** Reserves `ROOM` times the largest turn so far, but at least the floor and at most what is left. */
export function reserve(
  accounts: readonly Account[],
  turn: { readonly largest: Record<Metered, number>; readonly floor: Record<Metered, number> },
): Reservation {
  const exhausted = exhaustedBy(accounts, { usd: 0, tokens: 0 });
  if (exhausted !== null) return { ok: false, exhausted };
  const held = (unit: Metered): number | null => {
    const left = leftOf(accounts, unit);
    return left === null ? null : Math.min(left, Math.max(turn.floor[unit], ROOM * turn.largest[unit]));
  };
  return { ok: true, reserved: { usd: held("usd"), tokens: whole(held("tokens")) } };
}

/** Raises a used-up reservation only by a small step: other turns may need the rest of the budget. */
export function extend(
  accounts: readonly Account[],
  turn: { readonly used: Record<Metered, number>; readonly floor: Record<Metered, number> },
): Reservation {
  const began = accounts.map((account) => ({ ...account, turns: 0 }));
  const exhausted = exhaustedBy(began, turn.used);
  if (exhausted !== null) return { ok: false, exhausted };
  const held = (unit: Metered): number | null => {
    const left = leftOf(accounts, unit);
    if (left === null) return null;
    const used = turn.used[unit];
    const wanted = Math.max(used + turn.floor[unit], STEP * used);
    // If nothing is used and the floor is zero, the reservation would stay zero. So it becomes all that is
    // left.
    return wanted > used ? Math.min(left, wanted) : left;
  };
  return { ok: true, reserved: { usd: held("usd"), tokens: whole(held("tokens")) } };
}

export function isReached(used: Record<Metered, number>, reserved: Amount): boolean {
  return METERED.some((unit) => {
    const held = reserved[unit];
    return held !== null && exact(used[unit]) >= exact(held);
  });
}

/** Returns what the tightest of these budgets has left; null if none limits this unit. */
export function leftOf(accounts: readonly Account[], unit: Metered | "turns"): number | null {
  let least: number | null = null;
  for (const account of accounts) {
    const limit = account.budget[unit];
    if (limit === undefined) continue;
    const taken = unit === "turns" ? account.turns : account.spent[unit] + account.reserved[unit];
    const left = Math.max(0, exact(limit - taken));
    least = least === null ? left : Math.min(least, left);
  }
  return least;
}

/** Returns the first exhausted budget; the session's own is checked before its ancestors'. */
function exhaustedBy(accounts: readonly Account[], used: Record<Metered, number>): Exhausted | null {
  for (const account of accounts) {
    for (const unit of METERED) {
      const limit = account.budget[unit];
      const spent = exact(account.spent[unit] + used[unit]);
      if (limit === undefined || exact(limit - spent - account.reserved[unit]) > 0) continue;
      return { unit, limit, reason: spentReason(account, unit, { limit, spent }) };
    }
    const { turns } = account.budget;
    if (turns === undefined || account.turns < turns) continue;
    return { unit: "turns", limit: turns, reason: limitReason("turns", turns) };
  }
  return null;
}

function spentReason(account: Account, unit: Metered, at: { limit: number; spent: number }): string {
  const verb = unit === "usd" ? "spent" : "used";
  const family = account.isOwn ? "" : " with its family";
  const held = exact(account.reserved[unit]);
  const others = at.spent < at.limit && held > 0 ? `; ${amount(unit, held)} reserved by other turns` : "";
  return `${limitReason(unit, at.limit)} (${verb} ${amount(unit, at.spent)}${family}${others})`;
}

export function limitReason(unit: Exhausted["unit"], limit: number): string {
  return `it reached its limit of ${limitWords(unit, limit)}`;
}

/** "$2.00", "50k tokens", "3 turns", "30 min". */
export function limitWords(unit: Exhausted["unit"], limit: number): string {
  if (unit === "turns") return count(limit, "turn");
  if (unit === "minutes") return limit >= 1 ? `${round(limit)} min` : `${round(limit * 60)} s`;
  return unit === "tokens" ? `${tokens(limit)} tokens` : amount(unit, limit);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function amount(unit: Metered, value: number): string {
  if (unit === "tokens") return tokens(value);
  return value > 0 && value < 0.01 ? `$${Number(value.toPrecision(2))}` : `$${value.toFixed(2)}`;
}

/** A turn's usage, as far as it is known when the prompt has ended. */
export interface Meter {
  /** Reported by the agent at the end. */
  readonly reported: Usage | null;
  /** Reported by the agent during the turn. */
  readonly metered: Usage | null;
  /** The reported tokens are only a part of those used. */
  readonly isPartial?: boolean;
  /** Nothing was sent to the agent. */
  readonly isUnsent: boolean;
  /** Usage is missing: the agent's process was killed or died, now or in an earlier attempt at the turn. */
  readonly isCut: boolean;
}

/** Returns the usage to book. If it is unknown, returns the whole reservation, marked as estimated. */
export function book(meter: Meter, reserved: Amount, price: Price | null): Usage {
  const said = most(meter.reported, meter.metered);
  const known = priced(said, price);
  if (meter.isUnsent) return known;
  const isUnsaid = meter.reported === null && meter.metered === null;
  const used = usedOf(known);
  const isUnknown = (unit: Metered): boolean => {
    if (meter.isCut || isUnsaid) return true;
    const isPartial = meter.isPartial === true;
    return unit === "usd" ? known.usd === null || (isPartial && said.usd === null) : isPartial;
  };
  const missing = (unit: Metered): number => {
    const held = reserved[unit];
    return held === null || !isUnknown(unit) ? 0 : Math.max(0, held - used[unit]);
  };
  const isEstimated =
    meter.isPartial === true || METERED.some((unit) => reserved[unit] !== null && isUnknown(unit));
  if (!isEstimated) return known;
  return {
    ...known,
    inputTokens: known.inputTokens + missing("tokens"),
    usd: reserved.usd === null ? known.usd : exact(used.usd + missing("usd")),
    estimated: true,
  };
}

/** Merges two reports about one prompt: the larger value of each field, since either may be incomplete. */
export function most(a: Usage | null, b: Usage | null): Usage {
  if (a === null || b === null) return a ?? b ?? NO_USAGE;
  return {
    inputTokens: Math.max(a.inputTokens, b.inputTokens),
    cachedTokens: Math.max(a.cachedTokens, b.cachedTokens),
    outputTokens: Math.max(a.outputTokens, b.outputTokens),
    usd: a.usd === null || b.usd === null ? (a.usd ?? b.usd) : Math.max(a.usd, b.usd),
  };
}

/** Adds the cost if the agent reported none: its tokens at the model's price. */
export function priced(usage: Usage, price: Price | null): Usage {
  if (usage.usd !== null || price === null) return usage;
  // `inputTokens` never includes cached tokens: every driver and reader counts them separately.
  const cached = usage.cachedTokens * (price.cached ?? price.input);
  const micro = usage.inputTokens * price.input + cached + usage.outputTokens * price.output;
  return { ...usage, usd: exact(micro / 1_000_000) };
}

export function usedOf(usage: Usage): Record<Metered, number> {
  return { usd: usage.usd ?? 0, tokens: tokensOf(usage) };
}

function tokensOf(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens;
}

/** Returns why a budget cannot be enforced with this agent; null if it can. */
export function meterProblem(
  limits: Budget,
  agent: { readonly name: string; readonly cost: "usd" | "tokens" | "none"; readonly model: string | null },
  hasPrice: boolean,
): string | null {
  if (limits.tokens !== undefined && agent.cost === "none") {
    return `"${agent.name}" does not report the tokens it uses, so a token limit cannot be enforced. Choose another agent, or limit turns or minutes.`;
  }
  if (limits.usd === undefined || agent.cost === "usd") return null;
  if (agent.cost === "tokens" && hasPrice) return null;
  const model = agent.model === null ? "its model" : `the model "${agent.model}"`;
  return `"${agent.name}" does not report what it costs and ${model} has no price, so a limit in USD cannot be enforced. Choose another agent, limit tokens, turns or minutes, or let the user set "prices" in kinfold.yaml.`;
}

/** A period in which a question to a person was open; `to` is null while the question is still open. */
export interface Asked {
  readonly from: number;
  readonly to: number | null;
}

/** Returns a round's duration without the time when a question to a person was open or the machine slept. */
export function workedMs(round: {
  readonly openedAt: number;
  readonly now: number;
  readonly pausedMs: number;
  readonly asked: readonly Asked[];
}): number {
  const stretches = round.asked
    .map(({ from, to }) => ({
      from: Math.max(from, round.openedAt),
      to: Math.min(to ?? round.now, round.now),
    }))
    .filter(({ from, to }) => to > from)
    .toSorted((a, b) => a.from - b.from);
  let askedMs = 0;
  let end = round.openedAt;
  for (const { from, to } of stretches) {
    askedMs += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return Math.max(0, round.now - round.openedAt - round.pausedMs - askedMs);
}

/** Returns when a parked session tries again. The jitter spreads the starts of several sessions. */
export function parkedUntil(at: {
  readonly resetAt: number;
  readonly now: number;
  readonly longestMs: number;
  readonly jitterMs: number;
  /** Random, from 0 to 1. */
  readonly chance: number;
}): number {
  const waitMs = Math.max(PARK_MIN_MS, at.resetAt - at.now) + at.chance * at.jitterMs;
  return Math.round(at.now + Math.min(waitMs, at.longestMs));
}

const PARK_MIN_MS = 500;

/** Rounds dollars to the nanodollar, so that sums of fractions leave no rounding error. */
function exact(value: number): number {
  return Math.round(value * 1e9) / 1e9;
}

function whole(value: number | null): number | null {
  return value === null ? null : Math.ceil(value);
}
