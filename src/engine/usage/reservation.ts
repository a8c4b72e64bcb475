import type { Price, Usage } from "../../contract/index.ts";
import {
  type Amount,
  extend,
  isReached,
  priced,
  reserve,
  type Reservation,
  usedOf,
} from "../../domain/budget.ts";
import { accountsOf } from "../../kernel/budget.ts";
import { park } from "../../kernel/park.ts";
import { type SessionRecord, STALE, type Tx, type TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import { fenceOf } from "../agent/process-lease.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";

type Reserved = Pick<TurnRecord, "reservedTokens" | "reservedUsd">;

/** Reserves budget for a new turn. If one of the budgets is used up, parks the session and returns null. */
export async function reserveTurn(
  deps: EngineDeps,
  tx: Tx,
  session: SessionRecord,
): Promise<Reserved | null> {
  const accounts = await accountsOf(tx, session);
  if (accounts.length === 0) return asColumns(NOTHING);
  const largest = await tx.turns.largest(session.rootId, session.profile);
  const reservation = reserve(accounts, { largest, floor: floorOf(deps) });
  if (reservation.ok) return asColumns(reservation.reserved);
  const { reason } = reservation.exhausted;
  const since = deps.now();
  await park(tx, session, {
    parked: { on: "budget", since, until: null, reason },
    error: { error: reason, kind: "budget" },
  });
  return null;
}

/** Reserves budget for work that the agent has begun unprompted; reserves 0 if nothing is left. */
export async function reserveBegun(deps: EngineDeps, tx: Tx, session: SessionRecord): Promise<Reserved> {
  const accounts = await accountsOf(tx, session);
  const nothing = { usd: 0, tokens: 0 };
  const reservation = extend(accounts, { used: nothing, floor: floorOf(deps) });
  if (reservation.ok) return asColumns(reservation.reserved);
  const counts = (unit: "usd" | "tokens"): boolean =>
    accounts.some((each) => each.budget[unit] !== undefined);
  return asColumns({ usd: counts("usd") ? 0 : null, tokens: counts("tokens") ? 0 : null });
}

/**
 * Runs after each metered model call: a turn that has used its reservation asks for more, and is stopped if
 * nothing is left. So a turn exceeds its budget by at most one call.
 */
export function meter(runtime: Runtime, slot: AgentSlot): void {
  const { recorder } = slot;
  if (recorder === null || asking.has(recorder) || slot.limit !== null) return;
  if (!hasUsedAll(runtime.deps, slot.session, recorder)) return;
  asking.add(recorder);
  askForMore(runtime, slot, recorder)
    .catch((error: unknown) => {
      const about = { err: error, sessionId: slot.session.id };
      runtime.deps.log.error(
        about,
        "raising a budget reservation failed; retrying after the next model call",
      );
    })
    .finally(() => asking.delete(recorder));
}

/** Stops the running turn. It fails with `reason` once its agent has stopped or its process was ended. */
export function stopAtLimit(slot: AgentSlot, reason: string, kind: "budget" | "silence" = "budget"): void {
  const { recorder } = slot;
  if (recorder === null) return;
  if (slot.limit === null) recorder.notice(`stopped: ${reason}`);
  // While the agent is starting, the slot only records the limit. The caller's next check stops the turn.
  slot.exceed(recorder, { reason, kind });
}

export function priceOf(deps: EngineDeps, session: SessionRecord): Price | null {
  const { prices } = deps.config;
  const asked = session.spawnConfig["model"];
  // An agent may report the requested model under another name, so both names are looked up.
  const names = [session.model, typeof asked === "string" ? asked : null].filter((name) => name !== null);
  const priced = names.find((name) => Object.hasOwn(prices, name));
  return priced === undefined ? null : (prices[priced] ?? null);
}

const asking = new WeakSet<Recorder>();
const NOTHING: Amount = { usd: null, tokens: null };

async function askForMore(runtime: Runtime, slot: AgentSlot, recorder: Recorder): Promise<void> {
  const { deps } = runtime;
  while (slot.isIn(recorder) && hasUsedAll(deps, slot.session, recorder)) {
    const answer = await raiseReservation(deps, slot.session, recorder);
    if (answer === null || !slot.isIn(recorder)) return;
    if (!answer.ok) {
      stopAtLimit(slot, answer.exhausted.reason);
      return;
    }
    Object.assign(recorder.turn, asColumns(answer.reserved));
  }
}

/** Raises a turn's reservation. Returns null if another process has taken over the turn. */
async function raiseReservation(
  deps: EngineDeps,
  session: SessionRecord,
  recorder: Recorder,
): Promise<Reservation | null> {
  const { turn } = recorder;
  const written = await deps.store.write(turn.rootId, fenceOf(turn), async (tx) => {
    const used = usedBy(deps, session, recorder.usage);
    const answer = extend(await accountsOf(tx, session, turn.id), { used, floor: floorOf(deps) });
    if (!answer.ok) return answer;
    const isOurs = await tx.turns.patchRunning(turn.id, turn.fence, asColumns(answer.reserved));
    return isOurs ? answer : null;
  });
  return written === STALE ? null : written;
}

function hasUsedAll(deps: EngineDeps, session: SessionRecord, recorder: Recorder): boolean {
  const { reservedTokens: tokens, reservedUsd: usd } = recorder.turn;
  return recorder.usage !== null && isReached(usedBy(deps, session, recorder.usage), { tokens, usd });
}

function usedBy(
  deps: EngineDeps,
  session: SessionRecord,
  usage: Usage | null,
): { usd: number; tokens: number } {
  return usage === null ? { usd: 0, tokens: 0 } : usedOf(priced(usage, priceOf(deps, session)));
}

function floorOf(deps: EngineDeps): { usd: number; tokens: number } {
  const { turnFloorUsd: usd, turnFloorTokens: tokens } = deps.config.budget;
  return { usd, tokens };
}

function asColumns(reserved: Amount): Reserved {
  return { reservedTokens: reserved.tokens, reservedUsd: reserved.usd };
}
