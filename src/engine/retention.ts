import { setImmediate as letOthersRun } from "node:timers/promises";
import type { Keep } from "../contract/index.ts";
import { count } from "../text/quantity.ts";
import type { Prunable } from "../store/port/store.ts";
import type { EngineDeps, Service } from "./deps.ts";
import { removeMessageFiles } from "./record/message-file.ts";
import { rolloutPoint } from "./rollout.ts";

const FIRST_MS = 60_000;
const PASS_MS = 10 * 60_000;
const DAY_MS = 86_400_000;
const MEGABYTE = 1_000_000;
const PAGE = 100;
/** Number of rows that one write removes, so that other writes do not wait long. */
const SLICE = 100;

/**
 * Removes, in small writes, entries beyond a scope's retention limits and events of trees that have been idle
 * for long. Sessions with an open round keep everything. Every session keeps its place in the tree, its
 * turns, results and receipts.
 */
export class Retention implements Service {
  readonly name = "retention";
  readonly #deps: EngineDeps;
  #timer: NodeJS.Timeout | null = null;
  #pass: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
  }

  async run(): Promise<void> {
    const { keep, scopes } = this.#deps.config;
    const isLimited = [keep, ...Object.values(scopes).map((scope) => scope.keep)].some(
      (each) => each !== undefined && (each.days !== null || each.megabytes !== null),
    );
    if (isLimited || keep.eventDays !== null) this.#passIn(FIRST_MS);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#pass;
  }

  /** Checks every scope once, then every tree. */
  async pass(): Promise<void> {
    const { keep, scopes } = this.#deps.config;
    for (const scope of await this.#deps.store.read.retention.scopes()) {
      const { days, megabytes } = scopes[scope]?.keep ?? keep;
      if (days !== null) await this.#byAge(scope, days);
      if (megabytes !== null) await this.#bySize(scope, megabytes * MEGABYTE);
    }
    if (keep.eventDays !== null) await this.#events(this.#deps.now() - keep.eventDays * DAY_MS);
  }

  /** Removes events of idle trees. Keeps events that are not in the rollouts yet: a restore needs them. */
  async #events(idleSince: number): Promise<void> {
    const xidBelow = await rolloutPoint(this.#deps);
    for (let after: string | undefined = ""; after !== undefined && !this.#isStopped;) {
      const page = await this.#deps.store.read.retention.trees({ idleSince, after, limit: PAGE });
      for (const { rootId, isIdle } of page) {
        if (isIdle) await this.#pruneTree(rootId, { idleSince, xidBelow });
      }
      after = page.at(-1)?.rootId;
      await letOthersRun();
    }
  }

  async #pruneTree(rootId: string, of: { idleSince: number; xidBelow: number }): Promise<void> {
    for (let isDone = false; !isDone && !this.#isStopped;) {
      // No fence: the write removes only stored events, which no process changes.
      ({ isDone } = await this.#deps.store.write(rootId, (tx) =>
        tx.retention.pruneEvents({ ...of, limit: SLICE }),
      ));
      await letOthersRun();
    }
  }

  async #byAge(scope: string, days: Keep["days"] & number): Promise<void> {
    const olderThan = this.#deps.now() - days * DAY_MS;
    for await (const session of this.#sessions(scope, "createdAt")) {
      if (session.createdAt >= olderThan) return;
      if (!session.isOpen) await this.#prune(session, { olderThan, bytesMin: null });
    }
  }

  async #bySize(scope: string, bytesMax: number): Promise<void> {
    let over = -bytesMax;
    for await (const session of this.#sessions(scope, "createdAt")) over += await this.#measured(session);
    for await (const session of this.#sessions(scope, "lastActivityAt")) {
      if (over <= 0) return;
      if (!session.isOpen) over -= await this.#prune(session, { olderThan: null, bytesMin: over });
    }
  }

  async *#sessions(scope: string, by: "createdAt" | "lastActivityAt"): AsyncGenerator<Prunable> {
    let after: Prunable | undefined;
    for (;;) {
      const page = await this.#deps.store.read.retention.sessions(scope, {
        by,
        limit: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      for (const session of page) {
        if (this.#isStopped) return;
        yield session;
      }
      after = page.at(-1);
      if (after === undefined || page.length < PAGE) return;
    }
  }

  async #measured(session: Prunable): Promise<number> {
    let { bytes } = session;
    for (let isDone = session.measuredTo >= session.entryCount; !isDone && !this.#isStopped;) {
      // No fence: the write counts stored bytes, regardless of which process runs the session.
      const more = await this.#deps.store.write(session.rootId, (tx) =>
        tx.retention.measure(session.id, SLICE),
      );
      bytes += more.bytes;
      ({ isDone } = more);
      await letOthersRun();
    }
    return bytes;
  }

  /** Removes entries of a session. Returns the number of bytes removed. */
  async #prune(
    session: Prunable,
    of: { olderThan: number | null; bytesMin: number | null },
  ): Promise<number> {
    let bytes = 0;
    let removed = 0;
    for (let isDone = false; !isDone && !this.#isStopped;) {
      // No fence: the entries of settled turns no longer change.
      const gone = await this.#deps.store.write(session.rootId, async (tx) => {
        const bytesMin = of.bytesMin === null ? null : of.bytesMin - bytes;
        const pruned = await tx.retention.prune(session.id, { ...of, bytesMin, limit: SLICE });
        if (pruned.isDone && removed + pruned.removed > 0) {
          const text = `${count(removed + pruned.removed, "entry", "entries")} removed, as the scope keeps no more`;
          const data = { removed: removed + pruned.removed };
          tx.append({ sessionId: session.id, type: "notice", text, data, at: this.#deps.now() });
        }
        return pruned;
      });
      bytes += gone.bytes;
      removed += gone.removed;
      ({ isDone } = gone);
      await letOthersRun();
    }
    if (removed > 0) await removeMessageFiles(this.#deps, session.id);
    return bytes;
  }

  #passIn(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#pass = this.pass()
        .catch((error: unknown) =>
          this.#deps.log.error({ err: error }, "retention pass failed; retrying at the next pass"),
        )
        .finally(() => {
          if (!this.#isStopped) this.#passIn(PASS_MS);
        });
    }, ms);
    this.#timer.unref();
  }
}
