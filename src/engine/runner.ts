import type { Agent } from "../contract/index.ts";
import { Refusal } from "../contract/refusal.ts";
import type { Commit, SessionRecord } from "../store/port/store.ts";
import { takeEarly } from "./turn/autonomous.ts";
import { claim } from "./turn/claim.ts";
import type { EngineDeps, Service } from "./deps.ts";
import { AgentSlot, type Runtime } from "./agent/slot.ts";
import type { Recorder } from "./record/recorder.ts";
import { recover } from "./recovery/recovery.ts";
import { steerQueued } from "./turn/steer.ts";
import { forgetDowntime } from "./round-clock.ts";
import { runTurn } from "./turn/turn.ts";

/** Polling interval, which limits the delay when a wake is lost. */
const POLL_MS = 2_000;
/** Extra rows to read, because ready sessions that cannot be claimed yet may fill the first rows. */
const SPARE = 16;

/**
 * Hosts agent processes: finds ready sessions, claims them while slots are free, and reacts to commits about
 * the sessions that it runs. It bases every decision on the store.
 */
export class Runner implements Service {
  readonly name = "runner";
  readonly runtime: Runtime;
  readonly #deps: EngineDeps;
  #filling: Promise<void> | null = null;
  #again = false;
  #timer: NodeJS.Timeout | null = null;
  #off: () => void = () => undefined;

  constructor(deps: EngineDeps, agents: readonly Agent[]) {
    this.#deps = deps;
    this.runtime = {
      deps,
      slots: new Map(),
      agents: new Map(agents.map((agent) => [agent.name, agent])),
      fill: () => this.#fillSoon(),
      isStopping: false,
      isHalted: true,
    };
  }

  async run(): Promise<void> {
    this.#off = this.#deps.store.onCommit((commit) => this.#onCommit(commit));
    await forgetDowntime(this.#deps);
    await recover(this.runtime);
    this.runtime.isHalted = false;
    this.#timer = setInterval(() => this.#poll(), POLL_MS);
    this.#fillSoon();
  }

  /** Ends all processes. Their turns stay open in the store, and the next start resumes them. */
  async stop(): Promise<void> {
    this.runtime.isStopping = true;
    this.#off();
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#filling;
    await this.#releaseAll();
  }

  /** Handles the loss of the node's lease: ends all agents without asking the store, and stops claiming. */
  halt(): void {
    if (this.runtime.isHalted) return;
    this.runtime.isHalted = true;
    void this.#releaseAll();
  }

  /** Starts over after the loss of the node's lease. Claims nothing until the node is registered again. */
  async startOver(register: () => Promise<void>): Promise<void> {
    this.halt();
    await this.#filling;
    await this.#releaseAll();
    await register();
    try {
      await recover(this.runtime);
    } catch (error) {
      this.#deps.log.error({ err: error }, "recovery failed; the heartbeat will look for lost turns");
    }
    this.runtime.isHalted = false;
    this.#fillSoon();
  }

  /** Ends every process of this node without settling its turn; recovery takes over the turns. */
  async #releaseAll(): Promise<void> {
    await Promise.all([...this.runtime.slots.values()].map(release));
  }

  #poll(): void {
    for (const id of this.runtime.slots.keys()) this.#lookSoon(id);
    this.#fillSoon();
  }

  #onCommit(commit: Commit): void {
    for (const id of commit.wakes) if (this.runtime.slots.has(id)) this.#lookSoon(id);
    if (commit.wakes.length > 0) this.#fillSoon();
  }

  #lookSoon(sessionId: string): void {
    look(this.runtime, sessionId).catch((error: unknown) => {
      this.#deps.log.error(
        { err: error, sessionId },
        "checking a running session failed; retrying at the next poll",
      );
    });
  }

  #fillSoon(): void {
    this.#again = true;
    if (this.#filling !== null || this.runtime.isStopping || this.runtime.isHalted) return;
    this.#filling = this.#fill().finally(() => {
      this.#filling = null;
      // `#fillSoon` may have been called between the last search and this line.
      if (this.#again) this.#fillSoon();
    });
  }

  async #fill(): Promise<void> {
    while (this.#again && !this.runtime.isStopping && !this.runtime.isHalted) {
      this.#again = false;
      try {
        await this.#fillOnce();
      } catch (error) {
        this.#deps.log.error({ err: error }, "looking for ready sessions failed; retrying at the next poll");
      }
    }
  }

  async #fillOnce(): Promise<void> {
    const { store, config } = this.#deps;
    const free = config.limits.turnsMax - (await store.read.turns.slotsHeld(store.node));
    if (free <= 0) return;
    const ready = await store.read.sessions.ready(store.node, free + this.runtime.slots.size + SPARE);
    const counts: Counts = { started: 0, withoutRoom: 0 };
    for (const session of ready) {
      if (counts.started >= free || this.runtime.isStopping || this.runtime.isHalted) return;
      await this.#tryStart(session, counts);
    }
  }

  /**
   * Starts a session. An error is only logged, because it concerns only this session. A refusal of the store
   * is rethrown, because it applies to all sessions.
   */
  async #tryStart(session: SessionRecord, counts: Counts): Promise<void> {
    try {
      await this.#start(session, counts);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      this.#deps.log.error({ err: error, sessionId: session.id }, "starting a session failed");
    }
  }

  async #start(session: SessionRecord, counts: Counts): Promise<void> {
    const slot = this.runtime.slots.get(session.id) ?? null;
    if (slot === null && !(await makeRoom(this.runtime, counts.withoutRoom))) {
      counts.withoutRoom += 1;
      return;
    }
    const isBegun = slot === null ? await this.#open(session) : await this.#goOn(session, slot);
    if (isBegun) counts.started += 1;
  }

  async #open(session: SessionRecord): Promise<boolean> {
    const claimed = await claim(this.#deps, session, null);
    if (claimed === null) return false;
    const slot = new AgentSlot(this.runtime, claimed);
    this.#begin(slot, slot.recorder, claimed.text);
    return true;
  }

  /** Starts the next turn in an idle slot. Claims the slot first, so that no idle timeout or exit ends it. */
  async #goOn(session: SessionRecord, slot: AgentSlot): Promise<boolean> {
    if (slot.state.phase !== "idle") return false;
    if (slot.lease.fence !== session.fence) {
      void slot.end();
      return false;
    }
    if (!slot.claim()) return false;
    try {
      const claimed = await claim(this.#deps, session, slot.lease);
      if (claimed !== null) this.#begin(slot, slot.begin(claimed.turn), claimed.text);
      return claimed !== null;
    } finally {
      // If nothing was claimed or the store failed, the slot returns to idle and drops the updates gathered
      // meanwhile.
      if (slot.recorder === null) takeEarly(slot);
      slot.releaseClaim();
    }
  }

  #begin(slot: AgentSlot, recorder: Recorder | null, text: string): void {
    this.#deps.reached("turn.claimed");
    // The recorder is null if the slot is gone. Recovery then takes over the turn.
    if (recorder !== null) slot.follow(runTurn(this.runtime, slot, { recorder, text }));
  }
}

interface Counts {
  started: number;
  withoutRoom: number;
}

/** Reacts to commits about a session that runs here: a cancel, a stop, or a message for the running turn. */
async function look(runtime: Runtime, sessionId: string): Promise<void> {
  const slot = runtime.slots.get(sessionId);
  if (slot === undefined || runtime.isStopping) return;
  const { read } = runtime.deps.store;
  const session = await read.sessions.byId(sessionId);
  if (session === null || session.endedAt !== null) {
    await slot.end();
    return;
  }
  const { recorder } = slot;
  if (recorder === null) return;
  const turn = await read.turns.running(sessionId);
  if (turn === null || turn.id !== recorder.turn.id) return;
  // If this turn has settled since it was read, `stop` does nothing, and the next turn is not stopped.
  if (turn.stopBy !== null) slot.stop(recorder);
  else await steerQueued(runtime, slot);
}

/**
 * Returns whether one more process may start; if not, ends the process that has been idle longest. A process
 * whose turn waits in a blocking call of ours does not count; otherwise the sessions that the turn waits for
 * could never start. `waiting` is the number of sessions that already wait for a process to end.
 */
async function makeRoom(runtime: Runtime, waiting: number): Promise<boolean> {
  const { slots, deps } = runtime;
  const { processesMax } = deps.config.limits;
  if (slots.size < processesMax) return true;
  const turns = await deps.store.read.turns.runningOn(deps.store.node);
  const blocked = turns.filter((turn) => turn.blocked > 0 && slots.has(turn.sessionId));
  if (slots.size - blocked.length < processesMax) return true;
  const all = [...slots.values()];
  if (all.filter((slot) => slot.isEnding).length > waiting) return false;
  const [oldest] = all
    .map((slot) => ({ slot, since: idleSince(slot) }))
    .filter(({ since }) => since !== null)
    .toSorted((a, b) => (a.since ?? 0) - (b.since ?? 0));
  void oldest?.slot.end();
  return false;
}

/** Returns since when the slot has been idle; null if it must not be ended for another session. */
function idleSince({ state }: AgentSlot): number | null {
  return state.phase === "idle" && !state.hasBackground ? state.since : null;
}

/** Ends a slot's process without settling its turn, which stays open for the next start. */
async function release(slot: AgentSlot): Promise<void> {
  const { recorder } = slot;
  const ended = slot.release();
  // The process ends even if the store does not accept the pending entries.
  await Promise.all([recorder?.handOver(), ended]);
}
