import { Refusal } from "../contract/refusal.ts";
import type { Caller } from "../contract/index.ts";

/**
 * How many requests run at a time. Further ones are refused at once, because an unbounded queue would answer
 * everyone late. Each kind of caller has its own limits, so that one kind cannot keep out the others.
 */
export const ROOM = {
  /** Requests in progress per session, not counting waits and feeds. */
  session: 32,
  /** Waits and feeds per session. */
  sessionLong: 16,
  /** Requests in progress per kind of caller, not counting waits and feeds. */
  kind: 128,
  kindLong: 512,
  /** While this many writes wait for the store, every request that may change something is refused. */
  writes: 500,
} as const;

const RETRY_MS = 1_000;

export interface Asking {
  readonly caller: Caller;
  /** The request may change something. */
  readonly isWrite: boolean;
  /** The request is a cancel. It is always admitted, because it ends work. */
  readonly isStop: boolean;
  readonly writesWaiting: number;
}

export interface Admitted {
  /** Counts the request as a wait or a feed from now on. Throws if too many of these are in progress. */
  becomeLong(): void;
  leave(): void;
}

interface Count {
  short: number;
  long: number;
}

export class Admission {
  readonly #kinds = new Map<string, Count>();
  readonly #sessions = new Map<string, Count>();

  admit({ caller, isWrite, isStop, writesWaiting }: Asking): Admitted {
    const kind = countOf(this.#kinds, caller.kind);
    const own = caller.kind === "session" ? countOf(this.#sessions, caller.id) : null;
    if (!isStop) {
      if (own !== null && own.short >= ROOM.session)
        throw busy("This session has too many calls in progress");
      if (kind.short >= ROOM.kind) throw busy("The daemon has too many requests in progress");
      if (isWrite && writesWaiting >= ROOM.writes) throw busy("Too many changes are waiting for the store");
    }
    const counts = own === null ? [kind] : [kind, own];
    let as: keyof Count | null = "short";
    change(counts, "short", 1);
    const leave = (): void => {
      if (as !== null) change(counts, as, -1);
      as = null;
      if (own !== null && own.short + own.long === 0) this.#sessions.delete(caller.id);
    };
    const becomeLong = (): void => {
      if (as !== "short") return;
      if (own !== null && own.long >= ROOM.sessionLong) throw busy("This session has too many waiting calls");
      if (kind.long >= ROOM.kindLong) throw busy("Too many callers are waiting");
      change(counts, "short", -1);
      change(counts, "long", 1);
      as = "long";
    };
    return { becomeLong, leave };
  }
}

function countOf(counts: Map<string, Count>, key: string): Count {
  const known = counts.get(key);
  if (known !== undefined) return known;
  const count = { short: 0, long: 0 };
  counts.set(key, count);
  return count;
}

function change(counts: readonly Count[], as: keyof Count, by: 1 | -1): void {
  for (const count of counts) count[as] += by;
}

export function busy(why: string): Refusal {
  return new Refusal("busy", `${why}; nothing was changed. Ask again in a second.`, {
    retryAfterMs: RETRY_MS,
  });
}

/** How many requests start in one turn of the event loop. */
const PER_TURN = 4;

/**
 * Starts at most `PER_TURN` requests per turn of the event loop. Hundreds may arrive at once; started
 * together, they would block all other work until the last one has been handled.
 */
export class RequestPacer {
  readonly #waiting: (() => void)[] = [];
  #begun = 0;
  #isTurning = false;

  enter(begin: () => void): void {
    this.#turn();
    if (this.#begun >= PER_TURN) {
      this.#waiting.push(begin);
      return;
    }
    this.#begun += 1;
    begin();
  }

  /** Resolves when the caller may continue. */
  passed(): Promise<void> {
    return new Promise((resolve) => this.enter(resolve));
  }

  #turn(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    setImmediate(() => {
      this.#isTurning = false;
      const next = this.#waiting.splice(0, PER_TURN);
      this.#begun = next.length;
      if (next.length > 0) this.#turn();
      for (const begin of next) begin();
    });
  }
}
