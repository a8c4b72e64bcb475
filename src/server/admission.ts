import { Refusal } from "../contract/refusal.ts";
import type { Caller } from "../contract/index.ts";

/**
 * How much is let in at a time. Over it a request is refused at once, because a queue without an end would
 * answer everybody late. Sessions, people and outside systems have rooms of their own, so that a flood of one
 * kind does not keep out the others.
 */
export const ROOM = {
  /** Requests of one session under way. */
  session: 32,
  /** Waits and feeds of one session. */
  sessionLong: 16,
  /** Requests of all callers of one kind. */
  kind: 128,
  kindLong: 512,
  /** Writes that wait for the store; beyond it nothing that changes anything is taken. */
  writes: 500,
} as const;

const RETRY_MS = 1_000;

export interface Asking {
  readonly caller: Caller;
  /** It may change something. */
  readonly isWrite: boolean;
  /** It stops work: it is let in however much is going on, because it makes room. */
  readonly isStop: boolean;
  readonly writesWaiting: number;
}

/** One request that was let in. */
export interface Admitted {
  /** It has become a wait or a feed: it costs little but may last. Throws where there are too many. */
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
        throw busy("This session has as many calls under way as it may");
      if (kind.short >= ROOM.kind) throw busy("The daemon has as many requests under way as it can take");
      if (isWrite && writesWaiting >= ROOM.writes)
        throw busy("The store has as many changes waiting as it can take");
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
      if (own !== null && own.long >= ROOM.sessionLong)
        throw busy("This session waits in as many calls as it may");
      if (kind.long >= ROOM.kindLong) throw busy("As many callers wait as the daemon can take");
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

/** How many requests begin in one turn of the event loop. */
const PER_TURN = 4;

/**
 * Lets requests begin a few at a time. Hundreds may arrive in one turn of the event loop, and begun together they
 * would hold it until the last of them has been looked at: between turns others are served. A request that comes
 * alone begins at once.
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

  /** Resolves when it is the caller's turn. */
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
