import type { Outcome, Usage } from "../../contract/index.ts";
import { book, parkedUntil } from "../../domain/budget.ts";
import type { CallbackData } from "../../domain/callback.ts";
import { type Landing, type Reach, landingOf } from "../../domain/landing.ts";
import { isPassing, type ProviderError, retryPauseMs } from "../../domain/provider-error.ts";
import { addUsage, receiptOf } from "../../domain/receipt.ts";
import { outcomeOf } from "../../domain/session.ts";
import type { PromptEnd } from "../../drivers/port.ts";
import { giveBack, makeVoid } from "../../kernel/admit.ts";
import { callBack, callbackData, callbackKey } from "../../kernel/callback.ts";
import {
  type ErrorPayload,
  park,
  parkForRetry,
  raiseError,
  retryBudgets,
  retryIn,
  withdrawSilence,
} from "../../kernel/park.ts";
import { withdrawOf } from "../../kernel/trigger.ts";
import { type RoundEnd, closeIfOver, closeRound } from "../../kernel/round.ts";
import type { MessageRecord, Parked, SessionRecord, Stale, TurnRecord, Tx } from "../../store/port/store.ts";
import { count, duration } from "../../text/quantity.ts";
import { checkpointTurn } from "./checkpoints.ts";
import { landInTranscript } from "./claim.ts";
import type { EngineDeps } from "../deps.ts";
import { fenceOf } from "../agent/process-lease.ts";
import { retryWrite } from "../retry-write.ts";
import { type Batch, writeBatch } from "../record/batch.ts";
import type { Recorder } from "../record/recorder.ts";
import { priceOf } from "../usage/reservation.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";
import { endSteering } from "./steer.ts";

export interface TurnEnd {
  readonly stopReason: PromptEnd["stopReason"] | "not_started" | "unknowable";
  /** Whether the agent got the prompt and replied to it, as far as is known. */
  readonly reach: Reach;
  /** Delivery ids in the agent's own record; null or absent if the record was not read. */
  readonly record?: ReadonlySet<string> | null;
  /** Why the turn did not complete, as one line from a closed list of reasons; null if it completed. */
  readonly reason: string | null;
  readonly usage: Usage | null;
  /** True if `usage` covers only the last model call. */
  readonly isUsagePartial?: boolean;
  /** True if processes of the agent still work after its prompt has ended. */
  readonly background: boolean;
  /** The outcome, if it does not follow from the stop reason. */
  readonly outcome?: Outcome;
  /** The kind of error, if it does not follow from the stop reason. */
  readonly errorKind?: ErrorPayload["kind"];
  /** The provider's error, if that ended the turn. */
  readonly provider?: ProviderError | null;
  /** When the vendor's usage limit resets, if that limit ended the turn. */
  readonly limitedUntil?: number | null;
  readonly left?: readonly { pid: number; command: string }[];
}

/**
 * Records an outcome and everything that follows from it, in one fenced transaction. Returns false if another
 * process has taken over the turn.
 */
export async function settle(
  deps: EngineDeps,
  recorder: Recorder,
  { end, isWanted }: { end: TurnEnd; isWanted: () => boolean },
): Promise<boolean> {
  const { turn } = recorder;
  const isSettled = await recorder.last(async (batch) => {
    deps.reached("outcome.received");
    const write = (): Promise<boolean | Stale> =>
      deps.store.write(turn.rootId, fenceOf(turn), (tx) =>
        settleInTx(deps, tx, { turn, end, batch, recorder }),
      );
    return (await retryWrite(deps, write, isWanted)) === true;
  });
  deps.reached("settle.committed");
  return isSettled;
}

interface Settling {
  readonly turn: TurnRecord;
  readonly end: TurnEnd;
  readonly batch: Batch;
  readonly recorder: Pick<
    Recorder,
    "seen" | "usage" | "lastText" | "toolUseCount" | "unacknowledged" | "hasBegun"
  >;
}

async function settleInTx(deps: EngineDeps, tx: Tx, settling: Settling): Promise<boolean> {
  const { turn, recorder } = settling;
  const now = deps.now();
  const retry = await retryAfter(deps, tx, { turn, end: settling.end });
  const end = retry === null ? settling.end : { ...settling.end, reason: retry.reason };
  const row = await tx.turns.byId(turn.id);
  const session = await tx.sessions.byId(turn.sessionId);
  if (session === null || row?.status !== "running") return false;
  await writeBatch(tx, turn, { batch: settling.batch, now });
  const outcome = outcomeOfTurn(session, row, end);
  const usage = bookedFor(deps, session, { settling, row });
  const { entryCount } = (await tx.sessions.byId(session.id))!;
  await checkpointTurn(tx, { session, turn, seen: recorder.seen, entryIndex: entryCount - 1, now });
  const durationMs = Math.max(0, now - row.startedAt);
  const settled: Partial<TurnRecord> = {
    status: outcome,
    settledAt: now,
    error: reasonOfTurn(outcome, row, end),
    stopReason: end.stopReason,
    lastAssistantMessage: recorder.lastText ?? row.lastAssistantMessage,
    entryTo: entryCount,
    toolUseCount: recorder.toolUseCount,
    usage,
    reservedTokens: null,
    reservedUsd: null,
    receipt: receiptOf(recorder.seen, { turns: 1, durationMs, usage, stopReason: end.stopReason }),
  };
  await tx.turns.patchRunning(turn.id, turn.fence, settled);
  const after: TurnRecord = { ...row, ...settled };
  await tx.sessions.patch(session.id, {
    usage: addUsage(session.usage, usage),
    toolUseCount: session.toolUseCount + recorder.toolUseCount,
    lastActivityAt: now,
    updatedAt: now,
    evidence: { state: outcome, reason: evidenceOf(outcome, after), confidence: "certain", at: now },
    backgroundUntil: end.background ? now + deps.config.backgroundMs : null,
  });
  const data = { turnId: turn.id, index: row.index, outcome, stopReason: end.stopReason, error: after.error };
  tx.append({ sessionId: session.id, type: "turn.settled", data, at: now });
  const ended = session.endedAt !== null;
  const unlanded = await settleMessages(tx, after, { end, ended, recorder, now });
  await withdrawSilence(tx, session, now);
  const lastTool = recorder.seen.lastToolHasResult ? null : recorder.seen.lastTool;
  const ending = { sessionId: session.id, turn: after, outcome, end, retry, unlanded, lastTool, now };
  await settleRound(deps, tx, ending);
  // Runs after `settleRound`, because withdrawing requests may close an open round as completed. A failed
  // round must be closed as failed first.
  await withdrawOf(tx, session.id, { fence: turn.fence, now });
  await retryBudgets(tx, session.rootId, now);
  tx.wake(session.id);
  return true;
}

/** Returns the turn's usage, or its reservation if the usage is unknown. */
function bookedFor(
  deps: EngineDeps,
  session: SessionRecord,
  { settling, row }: { settling: Settling; row: TurnRecord },
): Usage {
  const { end, recorder } = settling;
  const { stopReason } = end;
  const isResumed = row.attempt > 1;
  const meter = {
    reported: end.usage,
    metered: recorder.usage,
    isPartial: end.isUsagePartial ?? false,
    isUnsent: stopReason === "not_started" && !isResumed,
    isCut: stopReason === "exited" || stopReason === "unknowable" || isResumed,
  };
  const reserved = { tokens: row.reservedTokens, usd: row.reservedUsd };
  return book(meter, reserved, priceOf(deps, session));
}

function outcomeOfTurn(session: SessionRecord, turn: TurnRecord, end: TurnEnd): Outcome {
  if (session.endedAt !== null) return "cancelled";
  if (end.outcome !== undefined) return end.outcome;
  return outcomeOf(end.stopReason, turn.stopBy !== null);
}

/** A cancelled turn's reason is the note given with its stop. It says more than the agent's own reason. */
function reasonOfTurn(outcome: Outcome, turn: TurnRecord, end: TurnEnd): string | null {
  if (outcome === "completed") return null;
  return outcome === "cancelled" ? (turn.stopNote ?? end.reason) : end.reason;
}

function evidenceOf(outcome: Outcome, turn: TurnRecord): string {
  if (outcome === "completed") return "its last turn ended by itself";
  return turn.error ?? outcome;
}

/**
 * Decides what becomes of each message. Returns the first prompt for which it is unknown whether the agent
 * received it; null if there is none.
 */
async function settleMessages(
  tx: Tx,
  turn: TurnRecord,
  at: { end: TurnEnd; ended: boolean; recorder: Settling["recorder"]; now: number },
): Promise<string | null> {
  const { end, recorder, now } = at;
  let unlanded: string | null = null;
  for (const message of await tx.messages.ofTurn(turn.id)) {
    if (message.status !== "taken") continue;
    const { kind, carrier, id, deliveryId } = message;
    const landing = landingOf({
      kind,
      carrier,
      isAcknowledged: !recorder.unacknowledged.has(id),
      reach: end.reach,
      hasBegun: recorder.hasBegun,
      inRecord: end.record?.has(deliveryId) ?? null,
      isStopped: turn.status === "cancelled",
    });
    if (at.ended) await makeVoid(tx, message, { reason: "the session was cancelled", now });
    else await move(tx, message, { landing, now });
    if (!at.ended && landing === "unknown") unlanded ??= message.body;
  }
  return unlanded;
}

async function move(
  tx: Tx,
  message: MessageRecord,
  { landing, now }: { landing: Landing; now: number },
): Promise<void> {
  if (landing === "landed") await landInTranscript(tx, message, now);
  else if (landing === "unwanted" || landing === "unknown")
    await makeVoid(tx, message, { reason: VOID_REASONS[landing], now });
  else await giveBack(tx, message, { repeated: landing === "repeated", now });
}

const VOID_REASONS = {
  unwanted: "its turn was stopped before it began",
  unknown: "it may have reached the agent, and work is not repeated",
} as const;

async function settleRound(
  deps: EngineDeps,
  tx: Tx,
  at: {
    sessionId: string;
    turn: TurnRecord;
    outcome: Outcome;
    end: TurnEnd;
    retry: Retry | null;
    unlanded: string | null;
    lastTool: string | null;
    now: number;
  },
): Promise<void> {
  const session = await tx.sessions.byId(at.sessionId);
  if (session === null) return;
  if (session.endedAt !== null) {
    await completeCancelled(tx, session, at);
    return;
  }
  if (at.outcome === "failed" && (await parkAtLimit(deps, tx, { session, ...at }))) return;
  if (at.outcome === "failed" && at.retry?.isLeft === true) {
    await parkForRetry(tx, session, parkedFor(deps, at.retry, at.now));
    return;
  }
  const end: RoundEnd = {
    outcome: at.outcome,
    reason: at.turn.error,
    by: at.turn.stopBy,
    now: at.now,
    unlanded: at.unlanded,
    lastTool: at.lastTool,
    left: leftOf(at.end),
  };
  if (session.callback.when === "turn") await callBack(tx, session, { end, turn: at.turn });
  if (at.outcome === "completed") {
    await closeIfOver(tx, session.id, at.now);
    return;
  }
  // The error is stored as a trigger and an event. The parent gets only one message about it: the callback.
  if (at.outcome === "failed")
    await raiseError(tx, session, { error: errorOf(at.turn, at.end), now: at.now });
  await closeRound(tx, session, end);
}

/** The retry after a turn that failed with a temporary error of its provider. */
interface Retry {
  /** Number of this retry, from 1. */
  readonly number: number;
  readonly isLeft: boolean;
  /** The turn's reason; if retries are used up, it includes the number of attempts. */
  readonly reason: string;
}

/**
 * Returns the retry that follows; null if the error must not be retried. The number of earlier retries is in
 * the message that began the turn.
 */
async function retryAfter(
  deps: EngineDeps,
  tx: Tx,
  { turn, end }: { turn: TurnRecord; end: TurnEnd },
): Promise<Retry | null> {
  if (end.provider == null || !isPassing(end.provider) || end.errorKind !== undefined) return null;
  const tried = Math.max(0, ...(await tx.messages.ofTurn(turn.id)).map(retryIn));
  const isLeft = tried < deps.config.retriesMax;
  const times = isLeft || tried === 0 ? "" : ` (tried ${count(tried + 1, "time")})`;
  return { number: tried + 1, isLeft, reason: `${end.reason ?? "its provider failed"}${times}` };
}

function parkedFor(deps: EngineDeps, retry: Retry, now: number): Parked {
  const { retriesMax, retryMs } = deps.config;
  const pauseMs = retryPauseMs(retry.number, { ms: retryMs, chance: Math.random() });
  const reason = `${retry.reason}; retry ${retry.number} of ${retriesMax} in ${duration(pauseMs)}`;
  return { on: "limit", since: now, until: now + pauseMs, reason, retry: retry.number };
}

/** Parks a session at its vendor's usage limit until the reset, unless it is configured to fail. */
async function parkAtLimit(
  deps: EngineDeps,
  tx: Tx,
  at: { session: SessionRecord; turn: TurnRecord; end: TurnEnd; now: number },
): Promise<boolean> {
  const { session, end, now } = at;
  const resetAt = end.limitedUntil ?? null;
  const onLimit = session.spawnConfig["onLimit"] ?? deps.config.onLimit;
  if (resetAt === null || onLimit !== "park") return false;
  const { parkMs: longestMs, parkJitterMs: jitterMs } = deps.config;
  const until = parkedUntil({ resetAt, now, longestMs, jitterMs, chance: Math.random() });
  const reason = at.turn.error ?? "it reached its vendor's usage limit";
  const error = { ...errorOf(at.turn, end), waitMs: until - now };
  await park(tx, session, { parked: { on: "limit", since: now, until, reason }, error });
  return true;
}

function errorOf(turn: TurnRecord, end: TurnEnd): ErrorPayload {
  const resetAt = end.limitedUntil ?? null;
  const kind = end.errorKind ?? (resetAt === null ? errorKind(turn) : "limit");
  return { error: turn.error ?? "unknown", kind, ...(resetAt === null ? {} : { resetAt }) };
}

function errorKind(turn: TurnRecord): ErrorPayload["kind"] {
  if (turn.stopReason === "exited" || turn.stopReason === "not_started") return "crash";
  return turn.stopReason === "error" ? "provider" : "other";
}

/** Updates the queued callback of a session that was cancelled before its turn settled. */
async function completeCancelled(
  tx: Tx,
  session: SessionRecord,
  at: { turn: TurnRecord; end: TurnEnd; now: number },
): Promise<void> {
  if (session.parentId === null) return;
  const turn = session.callback.when === "turn" ? at.turn : null;
  const message = await tx.messages.byCallbackKey(session.parentId, callbackKey(session, turn));
  if (message === null || message.status !== "queued" || message.data === null) return;
  const before = message.data as unknown as CallbackData;
  const { reason, by, completedAt: now, stoppedBelow } = before;
  const end: RoundEnd = { outcome: "cancelled", reason, by, now, stoppedBelow };
  const fresh = await callbackData(tx, session, { end, turn });
  const left = leftOf(at.end);
  await tx.messages.move(message.id, ["queued"], { data: { ...fresh, left } });
}

function leftOf(end: TurnEnd): { pid: number; what: string }[] {
  return (end.left ?? []).map((each) => ({ pid: each.pid, what: each.command }));
}

/** Settles a turn. Afterwards its slot is idle or ending. */
export async function endTurn(
  runtime: Runtime,
  slot: AgentSlot,
  { recorder, end }: { recorder: Recorder; end: TurnEnd },
): Promise<void> {
  // If the slot was released, the turn stays open, and the next start or a new lease takes it over.
  const isOurs = (): boolean => slot.isIn(recorder);
  if (!isOurs()) return;
  await endSteering(slot, recorder);
  // If the agent is gone, its process tree is ended before the outcome is written.
  if (slot.agent === null || slot.hasExited(slot.agent) || slot.isEnding) await slot.end();
  if (!isOurs()) return;
  const isSettled = await settle(runtime.deps, recorder, {
    end: { ...withinLimit(slot, end), left: slot.left },
    isWanted: isOurs,
  });
  if (!isOurs()) return;
  if (isSettled) slot.settled(recorder, end.background);
  else await slot.release();
  if (slot.isEnding) await slot.end();
  runtime.fill();
}

/** A turn that was stopped at a limit has failed, unless the agent had already completed it. */
function withinLimit(slot: AgentSlot, end: TurnEnd): TurnEnd {
  if (slot.limit === null || end.stopReason === "end_turn") return end;
  const { reason, kind } = slot.limit;
  return { ...end, outcome: "failed", reason, errorKind: kind };
}
