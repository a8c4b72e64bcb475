import { Refusal } from "../contract/index.ts";
import type { WaitOutput } from "../contract/index.ts";
import { pause } from "./pause.ts";
import { Unreachable, ask } from "./request.ts";
import type { HttpTarget } from "./request.ts";

export interface WaitForOptions {
  /** The total time to wait; without it there is no limit. */
  readonly timeoutMs?: number;
  readonly until?: "completion" | "turn";
  readonly signal?: AbortSignal;
}

/**
 * The longest wait of one request. It is far below the five minutes after which many HTTP clients give up on
 * a response without headers.
 */
const SLICE_MS = 45_000;
const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 2_000;

/**
 * Waits until the round has ended or the time is up (`timedOut`). Retries errors that occur while the daemon
 * restarts; throws every other error.
 */
export async function waitFor(target: HttpTarget, id: string, options: WaitForOptions): Promise<WaitOutput> {
  const endsAt =
    options.timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + options.timeoutMs;
  let retryMs = RETRY_FIRST_MS;
  for (;;) {
    options.signal?.throwIfAborted();
    const leftMs = Math.max(0, endsAt - performance.now());
    try {
      const input = { id, until: options.until, timeoutMs: Math.ceil(Math.min(leftMs, SLICE_MS)) };
      const end = (await ask(target, "wait", { input, signal: options.signal })) as WaitOutput;
      if (!end.timedOut || performance.now() >= endsAt) return end;
      retryMs = RETRY_FIRST_MS;
    } catch (error) {
      if (!isPassing(error) || performance.now() + retryMs >= endsAt) throw error;
      await pause(retryMs, options.signal);
      retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
    }
  }
}

/** True for errors that a client sees while the daemon restarts. */
export function isPassing(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  return error instanceof Refusal && ["shutting_down", "store_busy", "busy"].includes(error.code);
}
