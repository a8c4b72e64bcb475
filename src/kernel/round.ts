import type { Outcome } from "../contract/index.ts";
import { roundHasCompleted, type RoundFacts } from "../domain/session.ts";
import type { Reads, SessionRecord, Tx, TurnRecord } from "../store/port/store.ts";
import { callBack } from "./callback.ts";
import { beginNextStep, chainProblem } from "./chain.ts";
import { openRound } from "./admit.ts";

export interface RoundEnd {
  readonly outcome: Outcome;
  readonly reason: string | null;
  /** Who stopped the round, as text; null if nobody did. */
  readonly by: string | null;
  readonly now: number;
  /** Number of descendants stopped with the session. */
  readonly stoppedBelow?: number;
  /** If set, the callback is stored as void with this reason, so the parent does not get it. */
  readonly silent?: string;
  /** The prompt of an interrupted round that is not sent again: the agent may have received it. */
  readonly unlanded?: string | null;
  /** The last tool call, if it had no result. */
  readonly lastTool?: string | null;
  /** Processes that could not be stopped. */
  readonly left?: readonly { pid: number | null; what: string }[];
}

/** Closes an open round and calls back the parent. Then closes the parent's round if that is over too. */
export async function closeRound(tx: Tx, session: SessionRecord, end: RoundEnd): Promise<void> {
  if (!session.roundOpen) return;
  const patch = {
    roundOpen: false,
    roundClosedAt: end.now,
    outcome: end.outcome,
    outcomeReason: end.reason,
    backgroundUntil: null,
    parked: null,
    held: HELD_AFTER[end.outcome],
    seen: false,
    updatedAt: end.now,
  };
  Object.assign(session, patch);
  await tx.sessions.patch(session.id, patch);
  const text = session.parentId === null ? null : `child session ${session.id} ${end.outcome}`;
  const data = { round: session.round, outcome: end.outcome, reason: end.reason, by: end.by };
  tx.append({ sessionId: session.id, type: "round.closed", text, data, at: end.now });
  await callBackAtEnd(tx, session, await afterStep(tx, session, end));
  if (session.parentId !== null && session.detachedAt === null)
    await closeIfOver(tx, session.parentId, end.now);
  await openForQueued(tx, session, end.now);
}

/**
 * Begins the next step of a chain; the finished step then sends no callback. If the next step may not begin,
 * the callback says why the chain ends.
 */
async function afterStep(tx: Tx, session: SessionRecord, end: RoundEnd): Promise<RoundEnd> {
  if (end.outcome !== "completed" || session.spawnConfig["chain"] === undefined) return end;
  const problem = await chainProblem(tx, session, end.now);
  if (problem !== null) {
    const { chain: _, ...spawnConfig } = session.spawnConfig;
    Object.assign(session, { spawnConfig, outcomeReason: problem });
    await tx.sessions.patch(session.id, { spawnConfig, outcomeReason: problem });
    return { ...end, reason: problem };
  }
  const next = await beginNextStep(tx, session, end.now);
  return next === null ? end : { ...end, silent: "its chain goes on" };
}

/** Opens a new round, with a new callback, for messages still in the inbox after an interruption. */
async function openForQueued(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  if (session.endedAt !== null || session.held !== null) return;
  if ((await tx.messages.queuedCount(session.id)) > 0) await openRound(tx, session, now);
}

/**
 * Sends the callback of a closed round. With `callback.when: "turn"`, each settled turn has already sent a
 * callback, so the round's end sends none, unless the session was cancelled.
 */
async function callBackAtEnd(tx: Tx, session: SessionRecord, end: RoundEnd): Promise<void> {
  if (session.callback.when === "completion") await callBack(tx, session, { end });
  else if (session.endedAt !== null)
    await callBack(tx, session, { end, turn: await tx.turns.running(session.id) });
}

/** Closes the session's round if it has completed, and then its ancestors' rounds by the same rule. */
export async function closeIfOver(tx: Tx, sessionId: string, now: number): Promise<void> {
  const session = await tx.sessions.byId(sessionId);
  if (session === null || !session.roundOpen || session.endedAt !== null) return;
  if (!roundHasCompleted(await roundFacts(tx, session))) return;
  await closeRound(tx, session, { outcome: "completed", reason: null, by: null, now });
}

export async function roundFacts(
  tx: Pick<Reads, "turns" | "messages" | "triggers" | "sessions">,
  session: SessionRecord,
): Promise<RoundFacts> {
  const running = await tx.turns.running(session.id);
  const last: TurnRecord | null = running ?? (await tx.turns.last(session.id));
  const triggers = await tx.triggers.openCount(session.id);
  return {
    ended: session.endedAt !== null,
    roundOpen: session.roundOpen,
    roundOpenedAt: session.roundOpenedAt,
    held: session.held !== null,
    turnRunning: running !== null,
    lastTurn: last === null || last.status === "running" ? null : last.status,
    openMessages: await tx.messages.openCount(session.id),
    openTriggers: triggers,
    openTriggerId:
      triggers === 0 ? null : ((await tx.triggers.open({ sessionId: session.id }))[0]?.id ?? null),
    backgroundUntil: session.backgroundUntil,
    parked: session.parked,
    awaitedChildren: (await tx.sessions.awaitedChildren(session.id)).length,
    updatedAt: session.updatedAt,
  };
}

/** The value of `held` after each outcome: why nothing is taken from the inbox, or null. */
const HELD_AFTER = { completed: null, failed: "failed", cancelled: "stopped", interrupted: null } as const;
