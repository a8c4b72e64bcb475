import type { Agent } from "../contract/index.ts";
import type { Commit, SessionRecord } from "../store/port.ts";
import { type Claim, claim } from "./claim.ts";
import type { EngineDeps, Service } from "./deps.ts";
import { dropPlace, endPlace, follow, goIdle, leaveIdle, stopTurn } from "./leave.ts";
import { newPlace, type Place, type Runtime } from "./place.ts";
import { recover } from "./recovery.ts";
import { steerQueued } from "./steer.ts";
import { forgetDowntime } from "./timekeeping.ts";
import { runTurn } from "./turn.ts";

/** The floor under every wake that is lost. */
const POLL_MS = 2_000;

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
  #isHalted = false;
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
    };
  }

  async run(): Promise<void> {
    this.#off = this.#deps.store.onCommit((commit) => this.#onCommit(commit));
    await forgetDowntime(this.#deps);
    await recover(this.runtime);
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

  /** After the node's lease was lost: nothing runs or is claimed until it is held again. */
  async startOver(register: () => Promise<void>): Promise<void> {
    this.#isHalted = true;
    await this.#filling;
    await this.#releaseAll();
    await register();
    await recover(this.runtime);
    this.#isHalted = false;
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
    if (this.#filling !== null || this.runtime.isStopping || this.#isHalted) return;
    this.#filling = this.#fill().finally(() => {
      this.#filling = null;
    });
  }

  async #fill(): Promise<void> {
    while (this.#again && !this.runtime.isStopping && !this.#isHalted) {
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
    const ready = await store.read.sessions.ready(store.node, free + this.runtime.places.size);
    let started = 0;
    for (const session of ready) {
      if (started >= free || this.runtime.isStopping || this.#isHalted) return;
      if (await this.#start(session)) started += 1;
    }
  }

  async #start(session: SessionRecord): Promise<boolean> {
    const place = this.runtime.places.get(session.id) ?? null;
    if (place !== null && (place.recorder !== null || place.isEnding || place.agent === null)) return false;
    if (place === null && !(await makeRoom(this.runtime))) return false;
    const claimed = await claimFor(this.runtime, place, session);
    if (claimed === null) return false;
    this.#deps.reached("turn.claimed");
    begin(this.runtime, place, claimed);
    return true;
  }
}

/** While it claims, an idle place is neither ended for idleness nor for its agent's exit. */
async function claimFor(
  runtime: Runtime,
  place: Place | null,
  session: SessionRecord,
): Promise<Claim | null> {
  if (place === null) return claim(runtime.deps, session, null);
  place.isClaimed = true;
  leaveIdle(place);
  try {
    const claimed = await claim(runtime.deps, session, place.hold);
    if (claimed === null && !place.isEnding) {
      if (place.agent?.hasExited === true) void endPlace(runtime, place);
      else goIdle(runtime, place);
    }
    return claimed;
  } finally {
    place.isClaimed = false;
  }
}

function begin(runtime: Runtime, held: Place | null, claimed: Claim): void {
  const { session, turn, hold, text } = claimed;
  const place = held ?? newPlace(session, hold);
  leaveIdle(place);
  runtime.places.set(session.id, place);
  follow(runtime, place, runTurn(runtime, place, { turn, text }));
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
  if (turn !== null && turn.stopBy !== null) await stopTurn(runtime, place);
  else await steerQueued(runtime, place);
}

/**
 * Whether one more process may start; the one that has been idle longest makes way. A process
 * whose turn is inside a blocking call of ours does not count, or those it waits for could never
 * start.
 */
async function makeRoom(runtime: Runtime): Promise<boolean> {
  const { places, deps } = runtime;
  const { processesMax } = deps.config.limits;
  if (places.size < processesMax) return true;
  const turns = await deps.store.read.turns.runningOn(deps.store.node);
  const blocked = turns.filter((turn) => turn.blocked > 0 && places.has(turn.sessionId));
  if (places.size - blocked.length < processesMax) return true;
  const idle = [...places.values()].filter((place) => place.idleSince !== null && !place.isEnding);
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
