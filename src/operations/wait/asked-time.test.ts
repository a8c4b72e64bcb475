import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { clockOf } from "../../kernel/budget.ts";
import { askPerson } from "../../kernel/trigger.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

const MINUTE = 60_000;
let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

async function me(id: string) {
  const { rootId, fence } = await world.session(id);
  return { kind: "session", id, rootId, fence } as const;
}

/** Starts a child with a limit of 30 minutes. The child then asks its parent a question. */
async function asking(): Promise<{ parent: string; child: string; triggerId: string; askedAt: number }> {
  const { session } = await world.ask("create", PERSON, { prompt: "x", cwd: world.folder });
  await world.take(session.id);
  const limits = { minutes: 30 };
  const made = await world.ask("spawn", await me(session.id), { id: session.id, prompt: "y", limits });
  const child = made.session.id;
  await world.take(child);
  const { triggerId } = await world.ask("ask", await me(child), { questions: [{ question: "Q" }], capMs: 0 });
  const { createdAt } = (await world.store.read.triggers.byId(triggerId))!;
  return { parent: session.id, child, triggerId, askedAt: createdAt };
}

async function minutesLeft(id: string, now: number): Promise<number> {
  const clock = await clockOf(world.store.read, await world.session(id), now);
  return Math.round(clock!.leftMs / MINUTE);
}

describe("the time of a session", () => {
  it("stops while a person is asked through an escalation", async () => {
    const { parent, child, triggerId, askedAt } = await asking();
    await world.ask("escalate", await me(parent), { id: triggerId });
    assert.equal(await minutesLeft(child, askedAt + 60 * MINUTE), 30);
  });

  it("runs while only its parent is asked, and stops when a person is asked as well", async () => {
    const { child, triggerId, askedAt } = await asking();
    assert.equal(await minutesLeft(child, askedAt + 20 * MINUTE), 10);
    const { rootId } = await world.session(child);
    await world.store.write(rootId, async (tx) =>
      askPerson(tx, (await tx.triggers.byId(triggerId))!, askedAt + 20 * MINUTE),
    );
    assert.equal(await minutesLeft(child, askedAt + 90 * MINUTE), 10);
    const due = await world.store.read.triggers.due(askedAt + 90 * MINUTE);
    assert.deepEqual(
      due.filter((each) => each.id === triggerId),
      [],
      "a person is asked once",
    );
  });
});
