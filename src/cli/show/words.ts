import type { Session } from "../../contract/index.ts";
import type { Colour } from "../terminal/paint.ts";
import { age, ago, cleanLine } from "../terminal/text.ts";
import { count } from "../../text/quantity.ts";

/** A session's state in words, the same on every surface. */
export interface StateWords {
  readonly glyph: string;
  readonly words: string;
  readonly colour: Colour | null;
}

export interface Around {
  /** Number of the session's open children that will call back. */
  readonly childrenOpen: number;
  /** Number of sessions that have waited for a slot longer than this one. */
  readonly ahead: number;
  /** The session's question to a person, in one line. */
  readonly ask?: string | null;
}

export function stateWords(session: Session, around: Around, now: number): StateWords {
  if (session.status === "running") return working(session, now);
  if (session.status === "waiting") return waiting(session, around);
  return atRest(session);
}

/** `asks` maps a session's id to its open question to a person. */
export function surroundings(
  sessions: readonly Session[],
  asks: ReadonlyMap<string, string> = new Map(),
): (session: Session) => Around {
  const open = new Map<string, number>();
  const queued: Session[] = [];
  for (const session of sessions) {
    if (isAwaited(session)) open.set(session.parentId, (open.get(session.parentId) ?? 0) + 1);
    if (session.status === "waiting" && session.waiting?.on === "slot") queued.push(session);
  }
  return (session) => ({
    childrenOpen: open.get(session.id) ?? 0,
    ahead: queued.filter((other) => isBefore(other, session)).length,
    ask: asks.get(session.id) ?? null,
  });
}

/** True if the session's round is open. */
export function isOpen(session: Session): boolean {
  return session.status === "running" || session.status === "waiting";
}

/** Returns the age of an open session, or how long ago any other session was last active. */
export function ageOf(session: Session, now: number): string {
  return age(now - (isOpen(session) ? session.createdAt : session.lastActivityAt));
}

/** Only states that a person should look at get a glyph. */
export function markedWords(state: StateWords): string {
  return MARKED.has(state.glyph) ? `${state.glyph} ${state.words}` : state.words;
}

function working(session: Session, now: number): StateWords {
  const quietMs = now - session.evidence.at;
  return { glyph: "●", words: workingWords(session, quietMs), colour: "blue" };
}

function workingWords({ evidence }: Session, quietMs: number): string {
  if (quietMs >= QUIET_MS) return `quiet ${age(quietMs)}, process alive`;
  if (evidence.state === "queued") return "working: starting";
  const does = cleanLine(evidence.reason);
  if (does === "" || /^(working|running)$/i.test(does)) return "working";
  const when = quietMs >= FRESH_MS ? `, ${ago(quietMs)}` : "";
  return `working: ${does.replace(/^working: /, "")}${when}`;
}

function waiting(session: Session, around: Around): StateWords {
  const since = session.waiting;
  switch (since?.on) {
    case "children":
      return { glyph: "◐", words: forChildren(around.childrenOpen), colour: null };
    case "slot":
      return { glyph: "◌", words: queuedWords(around.ahead), colour: null };
    case "limit":
      return { glyph: "◷", words: parked(session), colour: null };
    case "trigger":
      return asking(session, around);
    case "budget":
      return { glyph: "◆", words: "needs you: its budget is used up", colour: "amber" };
    case "node":
      return { glyph: "◐", words: `waiting for node ${cleanLine(session.node)}`, colour: null };
    case undefined:
      return { glyph: "◐", words: "waiting", colour: null };
  }
}

/** A child asks the person only if its parent passed the question on, did not answer, or may not decide. */
function asking(session: Session, around: Around): StateWords {
  const ask = around.ask ?? null;
  if (session.origin === "imported")
    return { glyph: "◆", words: "needs you: in its own terminal", colour: "amber" };
  if (ask !== null) return { glyph: "◆", words: `needs you: ${ask}`, colour: "amber" };
  if (session.parentId === null || session.detachedAt !== null)
    return { glyph: "◆", words: "needs you", colour: "amber" };
  return { glyph: "◐", words: "waiting for parent", colour: null };
}

export function queuedWords(ahead: number): string {
  return ahead > 0 ? `queued, ${ahead} ahead` : "queued";
}

function forChildren(open: number): string {
  return open === 0 ? "waiting for children" : `waiting for ${count(open, "child", "children")}`;
}

function parked(session: Session): string {
  const until = session.waiting?.until;
  const name = session.agent.charAt(0).toUpperCase() + session.agent.slice(1);
  if (until === undefined) return `parked (${name} limit)`;
  const retry = /; (retry \d+ of \d+) in /.exec(session.evidence.reason)?.[1];
  if (retry !== undefined)
    return `${name}'s provider is in trouble: ${retry} at ${new Date(until).toTimeString().slice(0, 8)}`;
  return `parked until ${new Date(until).toTimeString().slice(0, 5)} (${name} limit)`;
}

function atRest(session: Session): StateWords {
  if (session.rebuilt === true) return { glyph: "○", words: "rebuilt from its rollout", colour: null };
  const outcome = session.status === "ended" && session.outcome === null ? "cancelled" : session.outcome;
  switch (outcome) {
    case "completed":
      return { glyph: "✓", words: "done", colour: session.seen ? null : "green" };
    case "failed":
      return { glyph: "✕", words: withReason("failed", session), colour: session.seen ? null : "red" };
    case "cancelled":
      return { glyph: "⊘", words: withReason(`cancelled${byWhom(session)}`, session), colour: null };
    case "interrupted":
      return { glyph: "↯", words: withReason("interrupted", session), colour: "amber" };
    case null:
      return UNSURE.has(session.evidence.state)
        ? unsure(session)
        : { glyph: "○", words: "idle", colour: null };
  }
}

/** The agent's files do not say how the session ended, so this shows the evidence. */
function unsure({ evidence }: Session): StateWords {
  const reason = cleanLine(evidence.reason);
  return { glyph: "?", words: reason === "" ? evidence.state : `${evidence.state}: ${reason}`, colour: null };
}

const UNSURE = new Set(["unknown", "orphaned", "pending"]);

function withReason(word: string, session: Session): string {
  const reason = cleanLine(session.outcomeReason ?? "");
  const short = reason.replace(/^the agent process exited with code (\d+)/, "exit $1");
  return short === "" ? word : `${word}: ${short}`;
}

/** The reader is the user, so "the user" becomes "you". */
function byWhom(session: Session): string {
  const who = cleanLine(session.endedBy ?? "");
  return who === "" ? "" : ` by ${who === "the user" ? "you" : who}`;
}

function isAwaited(session: Session): session is Session & { parentId: string } {
  if (session.parentId === null || session.detachedAt !== null) return false;
  return isOpen(session) && session.callback.enabled && session.origin === "managed";
}

function isBefore(other: Session, session: Session): boolean {
  if (other.id === session.id) return false;
  const a = other.waiting?.since ?? other.createdAt;
  const b = session.waiting?.since ?? session.createdAt;
  return a < b || (a === b && other.id < session.id);
}

const MARKED = new Set(["◆", "✕", "↯", "?"]);
const QUIET_MS = 600_000;
const FRESH_MS = 2_000;
