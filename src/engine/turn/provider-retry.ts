import { isPassing, retryPauseMs } from "../../domain/provider-error.ts";
import { retryIn } from "../../kernel/park.ts";
import type { Parked, Tx, TurnRecord } from "../../store/port/store.ts";
import { count, duration } from "../../text/quantity.ts";
import type { EngineDeps } from "../deps.ts";
import type { TurnEnd } from "./settle.ts";

/** The retry after a turn that failed with a temporary error of its provider. */
export interface Retry {
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
export async function retryAfter(
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

export function parkedFor(deps: EngineDeps, retry: Retry, now: number): Parked {
  const { retriesMax, retryMs } = deps.config;
  const pauseMs = retryPauseMs(retry.number, { ms: retryMs, chance: Math.random() });
  const when = `retry ${retry.number} of ${retriesMax} in ${duration(pauseMs)}`;
  return {
    on: "limit",
    since: now,
    until: now + pauseMs,
    reason: `${retry.reason}; ${when}`,
    retry: retry.number,
  };
}
