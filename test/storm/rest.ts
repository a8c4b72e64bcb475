import { setTimeout as pause } from "node:timers/promises";
import type { Session } from "../../src/contract/index.ts";
import { Refusal } from "../../src/contract/refusal.ts";
import { script } from "../support/script.ts";
import type { People } from "./people.ts";
import type { World } from "./world.ts";

const QUIET_MS = 150_000;
const PROCESSES_MS = 40_000;

/**
 * Lets everything finish without faults. Every round closes, every live session gets one more prompt so that
 * messages still in its inbox are taken, and the idle processes end.
 */
export async function comeToRest(world: World, people: People, isCut: () => boolean): Promise<void> {
  world.noticeDeath();
  world.home.signal("SIGCONT");
  if (!world.isUp) await world.start();
  await people.rest();
  await allQuiet(world, people, { when: "after the storm", isCut });
  await promptEveryone(people, isCut);
  await allQuiet(world, people, { when: "after one more prompt for everyone", isCut });
  await processesGone(world, isCut);
  world.noticeDeath();
}

async function allQuiet(
  world: World,
  people: People,
  { when, isCut }: { when: string; isCut: () => boolean },
): Promise<void> {
  const deadline = performance.now() + QUIET_MS;
  for (;;) {
    const open = (await everyone(people)).filter(
      (each) => each.status === "running" || each.status === "waiting",
    );
    if (open.length === 0 || isCut()) return;
    if (performance.now() > deadline) {
      for (const each of open) {
        const { id, name, status, waiting, evidence } = each;
        world.findings.add("stuck", `${name} is still ${status} ${when}`, { id, waiting, evidence });
      }
      return;
    }
    await pause(200);
  }
}

async function everyone(people: People): Promise<Session[]> {
  const found: Session[] = [];
  for (const id of people.roots) {
    const tree = await people.call((client) => client.tree({ id }));
    if (tree !== null && !(tree instanceof Refusal)) found.push(...tree.sessions);
  }
  return found;
}

async function promptEveryone(people: People, isCut: () => boolean): Promise<void> {
  for (const { id, status } of await everyone(people)) {
    if (status === "ended" || isCut()) continue;
    await people.call((client) =>
      client.prompt({ id, prompt: script("say the storm is over"), key: `last-${id}` }),
    );
  }
}

async function processesGone(world: World, isCut: () => boolean): Promise<void> {
  const deadline = performance.now() + PROCESSES_MS;
  for (let left = world.processes(); left.length > 0 && !isCut(); left = world.processes()) {
    if (performance.now() > deadline) {
      for (const each of left) world.findings.add("orphan", "a process outlived its round", { ...each });
      return;
    }
    await pause(100);
  }
}
