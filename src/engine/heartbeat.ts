import { runnableMs } from "../system/runnable-time.ts";
import { endBackground } from "./background.ts";
import type { EngineDeps, Service } from "./deps.ts";
import { moveDeadlines, passDeadlines } from "./deadlines.ts";
import { adoptLost } from "./recovery/recovery.ts";
import type { Runner } from "./runner.ts";
import { SilenceWatch } from "./silence.ts";
import { pause, resumeParked, stopOvertime } from "./round-clock.ts";

const TICK_MS = 1_000;
const RENEW_MS = 5_000;
/** A node that has not renewed its lease for this long ends its agents, before other nodes may take over. */
const LOST_MS = 20_000;
/** A sleep shorter than this does not move deadlines. */
const SLEPT_MS = 10_000;

/**
 * Runs the periodic work of this node once a second: sleep detection, lease renewal, deadlines, background
 * work, parked and overtime rounds, silence, and lost turns.
 */
export class Heartbeat implements Service {
  readonly name = "heartbeat";
  readonly #deps: EngineDeps;
  readonly #runner: Runner;
  readonly #silence: SilenceWatch;
  #timer: NodeJS.Timeout | null = null;
  #busy: Promise<void> | null = null;
  #ticked: Beat = { wall: 0, monotonic: 0, runnable: 0 };
  #sleptMs = 0;
  /**
   * The length of the sleep by which deadlines are being moved, and the trees whose deadlines are already
   * moved. A retry skips those trees, so no deadline moves twice.
   */
  #moving: { readonly ms: number; readonly trees: Set<string> } | null = null;
  #renewed = 0;
  #startedAt = 0;

  constructor(deps: EngineDeps, runner: Runner) {
    this.#deps = deps;
    this.#runner = runner;
    this.#silence = new SilenceWatch(runner.runtime);
  }

  async run(): Promise<void> {
    this.#ticked = this.#beat();
    this.#renewed = performance.now();
    this.#startedAt = this.#deps.now();
    this.#timer = setInterval(() => this.#tickSoon(), TICK_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#busy;
  }

  #tickSoon(): void {
    this.#measure();
    // Checked outside the tick, because a store that does not answer blocks the tick.
    if (this.#isLost()) this.#runner.halt();
    if (this.#busy !== null) return;
    this.#busy = this.#tick()
      .catch((error: unknown) =>
        this.#deps.log.error({ err: error }, "heartbeat tick failed; retrying at the next tick"),
      )
      .finally(() => {
        this.#busy = null;
      });
  }

  /** Measures how long the daemon slept. Runs during a slow tick too, so that it does not look like sleep. */
  #measure(): void {
    const before = this.#ticked;
    this.#ticked = this.#beat();
    const sleptMs = sleptBetween(before, this.#ticked, TICK_MS);
    if (sleptMs <= SLEPT_MS) return;
    this.#sleptMs += sleptMs;
    // The database server counted the sleep as lease time, so the next tick renews the lease at once.
    this.#renewed -= RENEW_MS;
  }

  #beat(): Beat {
    return { wall: this.#deps.now(), monotonic: performance.now(), runnable: runnableMs() };
  }

  async #tick(): Promise<void> {
    // Deadlines are compared with the time at which the tick began, so that a sleep of the machine during the
    // tick does not make them pass.
    const { wall } = this.#ticked;
    await this.#renew();
    await this.#afterSleep();
    await this.#watchBackground(wall);
    await passDeadlines(this.#deps, this.#startedAt);
    await resumeParked(this.#deps, wall);
    await stopOvertime(this.#runner.runtime, wall);
    await this.#silence.beat();
    await adoptLost(this.#runner.runtime);
  }

  async #afterSleep(): Promise<void> {
    const { store, log } = this.#deps;
    if (this.#moving === null && this.#sleptMs === 0) return;
    if (this.#moving === null) {
      this.#moving = { ms: Math.round(this.#sleptMs), trees: new Set() };
      this.#sleptMs = 0;
    }
    const { ms: sleptMs, trees } = this.#moving;
    log.warn({ sleptMs }, "the machine or the daemon slept; moving open deadlines by that time");
    const open = Map.groupBy(
      await store.read.sessions.withOpenRound(store.node),
      (session) => session.rootId,
    );
    const asked = Map.groupBy(await store.read.triggers.withDeadline(), (trigger) => trigger.rootId);
    for (const rootId of new Set([...open.keys(), ...asked.keys()])) {
      if (trees.has(rootId)) continue;
      const sessions = open.get(rootId) ?? [];
      // No fence: a fence covers one session, and this write moves the deadlines of a whole tree.
      await store.write(rootId, async (tx) => {
        await moveDeadlines(tx, asked.get(rootId) ?? [], sleptMs);
        await pause(tx, sessions, sleptMs);
        for (const { id } of sessions) {
          const session = await tx.sessions.byId(id);
          if (session?.backgroundUntil == null) continue;
          await tx.sessions.patch(id, { backgroundUntil: session.backgroundUntil + sleptMs });
        }
        const text = `slept ${Math.round(sleptMs / 1000)} s; no deadline passed meanwhile`;
        tx.append({ sessionId: rootId, type: "notice", text, data: { sleptMs }, at: this.#deps.now() });
      });
      trees.add(rootId);
    }
    this.#moving = null;
  }

  /** Renews the node's lease, or ends all agents and starts over if it was lost. Does nothing on SQLite. */
  async #renew(): Promise<void> {
    const { store, log } = this.#deps;
    if (store.kind === "sqlite") return;
    const sinceMs = performance.now() - this.#renewed;
    const { runtime } = this.#runner;
    if (sinceMs < RENEW_MS && !runtime.isHalted) return;
    const sent = performance.now();
    if (!runtime.isHalted && !this.#isLost() && (await store.nodes.renew())) {
      this.#renewed = sent;
      // If the node was halted during the renewal, its agents are gone, and the next tick starts over.
      return;
    }
    log.warn(
      { sinceMs: Math.round(sinceMs) },
      "node lease lost: not renewed in time; ending all agents and starting over",
    );
    await this.#runner.startOver(async () => {
      await store.nodes.register([...this.#runner.runtime.agents.values()]);
      this.#renewed = performance.now();
    });
  }

  #isLost(): boolean {
    return this.#deps.store.kind !== "sqlite" && performance.now() - this.#renewed > LOST_MS;
  }

  async #watchBackground(now: number): Promise<void> {
    const { store } = this.#deps;
    for (const session of await store.read.sessions.inBackground(store.node)) {
      const slot = this.#runner.runtime.slots.get(session.id);
      const isOver = now >= (session.backgroundUntil ?? 0);
      const since = session.roundOpenedAt ?? 0;
      const isBusy = !isOver && slot?.agent != null && (await slot.agent.background(since));
      if (isBusy || slot?.recorder != null) continue;
      slot?.backgroundOver();
      await endBackground(this.#deps, session);
    }
  }
}

/** Clock readings of one beat, in milliseconds. */
export interface Beat {
  readonly wall: number;
  readonly monotonic: number;
  /** Time for which the main thread has run or waited for a processor. */
  readonly runnable: number;
}

/**
 * Returns how long the daemon slept between two beats that should be `beatMs` apart. The machine slept if the
 * wall clock advanced and the monotonic clock did not. The process was suspended if a beat is late although
 * the main thread was neither running nor waiting for a processor. A beat that is late because the thread was
 * busy is a stall, not sleep: deadlines count that time.
 */
export function sleptBetween(before: Beat, after: Beat, beatMs: number): number {
  const passedMs = after.monotonic - before.monotonic;
  const busyMs = Math.max(0, after.runnable - before.runnable);
  const stoppedMs = passedMs - beatMs - busyMs;
  const jumpMs = after.wall - before.wall - passedMs;
  return Math.max(0, stoppedMs, jumpMs);
}
