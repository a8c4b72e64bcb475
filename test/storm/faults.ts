import { setTimeout as pause } from "node:timers/promises";
import { MOMENTS } from "../../src/kernel/deps.ts";
import type { Chance } from "./chance.ts";
import type { Poke } from "./people.ts";
import type { World } from "./world.ts";

/** The faults and their relative frequencies. Each SIGKILL counts towards `killsMax`. */
const FAULTS = {
  killDaemon: 7,
  killDaemonAtMoment: 6,
  killDaemonInBurst: 1.5,
  killDaemonAfterStop: 2,
  killDaemonAfterCancel: 1,
  killAgentAfterTell: 2,
  killStoppedDaemon: 1,
  stopDaemon: 1,
  killAgent: 4,
  killStoppedAgent: 1,
  stopAgent: 1.5,
} as const;

const POSTGRES_FAULTS = {
  killPostgres: 2,
  restartPostgres: 1,
  holdPostgres: 1,
  cutAtCommit: 3,
  cutConnections: 1.5,
} as const;

type Fault = keyof typeof FAULTS | keyof typeof POSTGRES_FAULTS;

/** How long to wait at most for new events before the next fault. */
const PROGRESS_MS = 5_000;
/** How long a daemon may take to reach the moment at which it should die. */
const MOMENT_MS = 6_000;

/** Injects faults until there have been enough kills. Restarts the daemon after each of its deaths. */
export async function injectFaults(
  world: World,
  chance: Chance,
  options: Poking & {
    killsMax: number;
    /** The number of events so far. */
    progress: () => number;
    isOver: () => boolean;
    onKill: (kills: number) => void;
  },
): Promise<void> {
  const weights = world.kind === "postgres" ? { ...FAULTS, ...POSTGRES_FAULTS } : FAULTS;
  while (killsOf(world) < options.killsMax && !options.isOver()) {
    // The distance between faults is counted in events, not in time. So slow and fast machines do the same
    // amount of work between two faults.
    await progressed(options.progress, chance.is(0.25) ? 0 : chance.int(1, 50));
    await pause(chance.int(0, 40));
    const fault = chance.weighted<Fault>(weights as Readonly<Record<Fault, number>>);
    await APPLY[fault](world, chance, options);
    world.noticeDeath();
    if (!world.isUp) await startAgain(world);
    options.onKill(killsOf(world));
  }
}

export function killsOf(world: World): number {
  return ["daemon", "agent", "postgres"].reduce((sum, name) => sum + world.counts.get(`kills: ${name}`), 0);
}

interface Poking {
  /** Makes a person stop, cancel or message a session immediately. */
  readonly poke: (what: Poke) => void;
}

const APPLY: Readonly<Record<Fault, (world: World, chance: Chance, poking: Poking) => Promise<void>>> = {
  async killDaemon(world) {
    await kill(world, "killDaemon");
  },
  async killDaemonAtMoment(world, chance) {
    await kill(world, "killDaemon");
    const moment = chance.pick(MOMENTS);
    world.counts.add("kills: daemon");
    world.counts.add("fault: killDaemonAtMoment");
    const isUp = await world.start({ moment, count: chance.int(1, 4) });
    world.expectDeath();
    if (!isUp) return;
    const late = new AbortController();
    // The pause rejects only when it is aborted below.
    await Promise.race([
      world.home.ended(),
      pause(MOMENT_MS, null, { signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    world.counts.add(world.home.exit === null ? "moments not reached" : `moment: ${moment}`);
    await world.killDaemon();
  },
  async killDaemonInBurst(world, chance) {
    const count = chance.int(2, 5);
    for (let at = 0; at < count; at += 1) {
      await kill(world, "killDaemonInBurst");
      await startAgain(world);
      await pause(chance.int(0, 250));
    }
  },
  async killDaemonAfterStop(world, chance, { poke }) {
    poke("stop");
    await pause(chance.int(0, 300));
    await kill(world, "killDaemonAfterStop");
  },
  async killDaemonAfterCancel(world, chance, { poke }) {
    poke("cancel");
    await pause(chance.int(0, 300));
    await kill(world, "killDaemonAfterCancel");
  },
  async killAgentAfterTell(world, chance, { poke }) {
    const count = chance.int(1, 3);
    for (let at = 0; at < count; at += 1) poke("tell");
    await pause(chance.int(0, 300));
    killAgent(world, chance, "killAgentAfterTell");
  },
  async killStoppedDaemon(world, chance) {
    world.home.signal("SIGSTOP");
    await pause(chance.int(50, 800));
    await kill(world, "killStoppedDaemon");
  },
  async stopDaemon(world, chance) {
    world.counts.add("fault: stopDaemon");
    world.home.signal("SIGSTOP");
    await pause(chance.int(50, 2000));
    world.home.signal("SIGCONT");
  },
  async killAgent(world, chance) {
    killAgent(world, chance, "killAgent");
  },
  async killStoppedAgent(world, chance) {
    await stopAgent(world, chance, () => killAgent(world, chance, "killStoppedAgent"));
  },
  async stopAgent(world, chance) {
    world.counts.add("fault: stopAgent");
    await stopAgent(world, chance, () => undefined);
  },
  async killPostgres(world, chance) {
    world.counts.add("kills: postgres");
    world.counts.add("fault: killPostgres");
    await world.postgres!.crash();
    await pause(chance.int(0, 1500));
    await world.postgres!.startAgain();
  },
  async restartPostgres(world, chance) {
    world.counts.add("fault: restartPostgres");
    world.signal([world.postgres!.pid], "SIGINT");
    await pause(chance.int(0, 800));
    await world.postgres!.startAgain();
  },
  async holdPostgres(world, chance) {
    world.counts.add("fault: holdPostgres");
    const pids = world.postgres!.pids();
    world.signal(pids, "SIGSTOP");
    await pause(chance.int(100, 3000));
    world.signal(pids, "SIGCONT");
  },
  async cutAtCommit(world, chance) {
    world.counts.add("fault: cutAtCommit");
    world.proxy!.cutNextCommit(chance.pick(["before", "after"]));
    await pause(chance.int(50, 500));
  },
  async cutConnections(world) {
    world.counts.add("fault: cutConnections");
    world.proxy!.cutAll();
  },
};

async function progressed(progress: () => number, wanted: number): Promise<void> {
  const from = progress();
  const deadline = performance.now() + PROGRESS_MS;
  while (progress() < from + wanted && performance.now() < deadline) await pause(5);
}

async function kill(world: World, fault: Fault): Promise<void> {
  world.counts.add("kills: daemon");
  world.counts.add(`fault: ${fault}`);
  await world.killDaemon();
}

async function startAgain(world: World): Promise<void> {
  for (let tries = 0; tries < 5; tries += 1) {
    if (await world.start()) return;
    world.noticeDeath();
    await pause(200);
  }
  throw new Error(`the daemon does not start any more: ${world.lastWords().said}`);
}

function killAgent(world: World, chance: Chance, fault: Fault): void {
  const pids = world.agents();
  if (pids.length === 0) return;
  world.counts.add("kills: agent");
  world.counts.add(`fault: ${fault}`);
  world.signal([chance.pick(pids)], "SIGKILL");
}

async function stopAgent(world: World, chance: Chance, meanwhile: () => void): Promise<void> {
  const pids = world.agents();
  if (pids.length === 0) return;
  const pid = chance.pick(pids);
  world.signal([pid], "SIGSTOP");
  await pause(chance.int(50, 1500));
  meanwhile();
  world.signal([pid], "SIGCONT");
}
