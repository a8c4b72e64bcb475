import type { TriggerRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";

/** Polling interval, for commits whose notification was lost. */
const POLL_MS = 2_000;
const MANY = 64;
const PAUSE_MS = 100;

interface Waiting {
  readonly trigger: TriggerRecord;
  readonly resolve: (closed: TriggerRecord) => void;
}

/**
 * The open requests of one agent process. One query checks all of them. With one query each, every answer
 * would cause as many queries as there are open requests.
 */
export class OpenRequests {
  readonly #waiting = new Map<string, Waiting>();
  /** Number of requests that are being raised as triggers. */
  #raising = 0;
  #off: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #looking = false;
  #isStale = false;

  get size(): number {
    return this.#waiting.size + this.#raising;
  }

  /** Counts a request as open while `raise` writes it, so other new requests cannot exceed the limit. */
  async raising<T>(raise: () => Promise<T>): Promise<T> {
    this.#raising += 1;
    try {
      return await raise();
    } finally {
      this.#raising -= 1;
    }
  }

  /** Resolves with the trigger when it is closed by anyone, or when the process is ending. */
  closed(deps: EngineDeps, trigger: TriggerRecord, isEnding: () => boolean): Promise<TriggerRecord> {
    return new Promise((resolve) => {
      this.#waiting.set(trigger.id, { trigger, resolve });
      const look = (): void => this.#lookSoon(deps, isEnding);
      this.#off ??= deps.store.onCommit(({ rootIds, wakes }) => {
        // Closing a trigger wakes the session that asked.
        if (wakes.includes(trigger.sessionId)) look();
        else if (rootIds.includes(trigger.rootId) && isEnding()) look();
      });
      this.#timer ??= setInterval(look, POLL_MS);
      look();
    });
  }

  #lookSoon(deps: EngineDeps, isEnding: () => boolean): void {
    this.#isStale = true;
    if (this.#looking) return;
    this.#looking = true;
    // With many open requests each query costs more, so a pause follows it.
    const pauseMs = this.#waiting.size > MANY ? PAUSE_MS : 0;
    void this.#look(deps, isEnding)
      .then(() => new Promise((resolve) => setTimeout(resolve, pauseMs)))
      .finally(() => {
        this.#looking = false;
        if (this.#isStale && this.#waiting.size > 0) this.#lookSoon(deps, isEnding);
      });
  }

  async #look(deps: EngineDeps, isEnding: () => boolean): Promise<void> {
    this.#isStale = false;
    const waiting = [...this.#waiting.values()];
    const [first] = waiting;
    if (first === undefined) return;
    try {
      const open = await deps.store.read.triggers.open({ sessionId: first.trigger.sessionId });
      const ids = new Set(open.map(({ id }) => id));
      const isOver = isEnding();
      for (const { trigger, resolve } of waiting) {
        if (ids.has(trigger.id) && !isOver) continue;
        const closed = await deps.store.read.triggers.byId(trigger.id);
        this.#waiting.delete(trigger.id);
        resolve(closed ?? trigger);
      }
    } catch (error) {
      deps.log.error({ err: error }, "checking for answers to agent requests failed; retrying");
    }
    if (this.#waiting.size > 0) return;
    this.#off?.();
    this.#off = null;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
