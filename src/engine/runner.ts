import type { Agent } from "../contract/index.ts";
import { Refusal } from "../contract/refusal.ts";
import type { Commit, SessionRecord } from "../store/port/store.ts";
import { takeEarly } from "./turn/autonomous.ts";
import { type Claim, claim } from "./turn/claim.ts";
import type { EngineDeps, Service } from "./deps.ts";
import { dropPlace, endPlace, follow, goIdle, leaveIdle, stopTurn } from "./agent/stop.ts";
import { newPlace, type Place, type Runtime } from "./agent/slot.ts";
import { recover } from "./recovery/recovery.ts";
import { steerQueued } from "./turn/steer.ts";
import { forgetDowntime } from "./round-clock.ts";
import { runTurn } from "./turn/turn.ts";

/** The floor under every wake that is lost. */
const POLL_MS = 2_000;
/** Sessions that are ready and cannot be claimed yet must not hide those behind them. */
const SPARE = 16;

/**
 * Hosts agent processes: finds sessions that are ready, claims them while slots are free, and
 * reacts to what has been committed about those it runs. It decides nothing that is not in the
 * store.
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
      places: new Map(),
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

  /** What runs is left to the next start: its turns stay open in the store and are resumed there. */
  async stop(): Promise<void> {
    this.runtime.isStopping = true;
    this.#off();
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#filling;
    await this.#releaseAll();
  }

  /** The node's lease is lost: its agents end at once, whatever the store answers, and nothing is claimed. */
  halt(): void {
    if (this.runtime.isHalted) return;
    this.runtime.isHalted = true;
    void this.#releaseAll();
  }

  /** After the node's lease was lost: nothing runs or is claimed until it is held again. */
  async startOver(register: () => Promise<void>): Promise<void> {
    this.halt();
    await this.#filling;
    await this.#releaseAll();
    await register();
    try {
      await recover(this.runtime);
    } catch (error) {
      this.#deps.log.error({ err: error }, "not everything was recovered; lost turns are looked for again");
    }
    this.runtime.isHalted = false;
    this.#fillSoon();
  }

  /** Ends every process here without settling its turn; recovery takes the turns up again. */
  async #releaseAll(): Promise<void> {
    const places = [...this.runtime.places.values()];
    for (const place of places) leaveIdle(place);
    await Promise.all(places.map((place) => release(this.runtime, place)));
  }

  #poll(): void {
    for (const id of this.runtime.places.keys()) this.#lookSoon(id);
    this.#fillSoon();
  }

  #onCommit(commit: Commit): void {
    for (const id of commit.wakes) if (this.runtime.places.has(id)) this.#lookSoon(id);
    if (commit.wakes.length > 0) this.#fillSoon();
  }

  #lookSoon(sessionId: string): void {
    look(this.runtime, sessionId).catch((error: unknown) => {
      this.#deps.log.error(
        { err: error, sessionId },
        "could not look at a session; the next poll tries again",
      );
    });
  }

  #fillSoon(): void {
    this.#again = true;
    if (this.#filling !== null || this.runtime.isStopping || this.runtime.isHalted) return;
    this.#filling = this.#fill().finally(() => {
      this.#filling = null;
      // Asked for between its last look and its end.
      if (this.#again) this.#fillSoon();
    });
  }

  async #fill(): Promise<void> {
    while (this.#again && !this.runtime.isStopping && !this.runtime.isHalted) {
      this.#again = false;
      try {
        await this.#fillOnce();
      } catch (error) {
        this.#deps.log.error({ err: error }, "could not look for ready sessions; the next poll tries again");
      }
    }
  }

  async #fillOnce(): Promise<void> {
    const { store, config } = this.#deps;
    const free = config.limits.turnsMax - (await store.read.turns.slotsHeld(store.node));
    if (free <= 0) return;
    const ready = await store.read.sessions.ready(store.node, free + this.runtime.places.size + SPARE);
    const counts: Counts = { started: 0, withoutRoom: 0 };
    for (const session of ready) {
      if (counts.started >= free || this.runtime.isStopping || this.runtime.isHalted) return;
      await this.#tryStart(session, counts);
    }
  }

  /** One that cannot be started hides nobody behind it; a store that refuses refuses all. */
  async #tryStart(session: SessionRecord, counts: Counts): Promise<void> {
    try {
      await this.#start(session, counts);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      this.#deps.log.error({ err: error, sessionId: session.id }, "a session could not be started");
    }
  }

  async #start(session: SessionRecord, counts: Counts): Promise<void> {
    const place = this.runtime.places.get(session.id) ?? null;
    if (place === null && !(await makeRoom(this.runtime, counts.withoutRoom))) {
      counts.withoutRoom += 1;
      return;
    }
    const isBegun = place === null ? await this.#open(session) : await this.#goOn(session, place);
    if (isBegun) counts.started += 1;
  }

  async #open(session: SessionRecord): Promise<boolean> {
    const claimed = await claim(this.#deps, session, null);
    if (claimed !== null) this.#begin(newPlace(claimed.session, claimed.hold), claimed);
    return claimed !== null;
  }

  /** While it is claimed, an idle place is neither ended for idleness nor for its agent's exit. */
  async #goOn(session: SessionRecord, place: Place): Promise<boolean> {
    if (place.recorder !== null || place.isEnding || place.agent === null) return false;
    if (place.hold.fence !== session.fence) {
      void endPlace(this.runtime, place);
      return false;
    }
    place.isClaimed = true;
    leaveIdle(place);
    try {
      const claimed = await claim(this.#deps, session, place.hold);
      if (claimed !== null) this.#begin(place, claimed);
      return claimed !== null;
    } finally {
      place.isClaimed = false;
      if (place.recorder === null) unclaimed(this.runtime, place);
    }
  }

  #begin(place: Place, { session, turn, text }: Claim): void {
    this.#deps.reached("turn.claimed");
    leaveIdle(place);
    this.runtime.places.set(session.id, place);
    follow(this.runtime, place, runTurn(this.runtime, place, { turn, text }));
  }
}

/** Of one look for ready sessions. */
interface Counts {
  started: number;
  withoutRoom: number;
}

/** There was nothing to take, or the store refused: the place is as it was. */
function unclaimed(runtime: Runtime, place: Place): void {
  takeEarly(place);
  if (place.isEnding) return;
  if (place.agent?.hasExited === true) void endPlace(runtime, place);
  else goIdle(runtime, place);
}

/** What has been committed about a session that runs here: an end, a stop, a message for its turn. */
async function look(runtime: Runtime, sessionId: string): Promise<void> {
  const place = runtime.places.get(sessionId);
  if (place === undefined || runtime.isStopping) return;
  const { read } = runtime.deps.store;
  const session = await read.sessions.byId(sessionId);
  if (session === null || session.endedAt !== null) {
    await endPlace(runtime, place);
    return;
  }
  if (place.recorder === null) return;
  const turn = await read.turns.running(sessionId);
  // A turn that has settled since it was read must not stop the one after it.
  if (turn === null || turn.id !== place.recorder?.turn.id) return;
  if (turn.stopBy !== null) await stopTurn(runtime, place);
  else await steerQueued(runtime, place);
}

/**
 * Whether one more process may start; the one that has been idle longest makes way. A process
 * whose turn is inside a blocking call of ours does not count, or those it waits for could never
 * start. `waiting`: how many others wait for the room that is being made already.
 */
async function makeRoom(runtime: Runtime, waiting: number): Promise<boolean> {
  const { places, deps } = runtime;
  const { processesMax } = deps.config.limits;
  if (places.size < processesMax) return true;
  const turns = await deps.store.read.turns.runningOn(deps.store.node);
  const blocked = turns.filter((turn) => turn.blocked > 0 && places.has(turn.sessionId));
  if (places.size - blocked.length < processesMax) return true;
  const all = [...places.values()];
  if (all.filter((place) => place.isEnding).length > waiting) return false;
  const idle = all.filter((place) => place.idleSince !== null && !place.isEnding && !place.hasBackground);
  idle.sort((a, b) => (a.idleSince ?? 0) - (b.idleSince ?? 0));
  const [oldest] = idle;
  if (oldest !== undefined) void endPlace(runtime, oldest);
  return false;
}

async function release(runtime: Runtime, place: Place): Promise<void> {
  place.isEnding = true;
  const { recorder } = place;
  // Detached from its place, the prompt's end settles nothing: the turn stays open for the next start.
  place.recorder = null;
  // The process ends whether or not the store takes what was gathered.
  await Promise.all([recorder?.handOver(), endPlace(runtime, place)]);
  dropPlace(runtime, place);
}
