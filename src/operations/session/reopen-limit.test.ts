import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Caller } from "../../contract/index.ts";
import { closeRound } from "../../kernel/round.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

let world: World;
before(async () => {
  world = await openWorld({
    limits: { depthMax: 5, childrenMax: 2, sessionsMax: 4, spawnsPerMinuteMax: 6, spawnsMax: 8 },
  });
});
after(() => world.close());

type Me = Caller & { kind: "session" };

async function me(id: string): Promise<Me> {
  const { rootId, fence } = await world.session(id);
  return { kind: "session", id, rootId, fence };
}

async function root(): Promise<string> {
  const { session } = await world.ask("create", PERSON, { prompt: "x", cwd: world.folder });
  await world.take(session.id);
  return session.id;
}

async function spawn(parent: string): Promise<string> {
  const { session } = await world.ask("spawn", await me(parent), { id: parent, prompt: "y" });
  await world.take(session.id);
  return session.id;
}

/** Ends the session's turn. That also ends its round. */
async function finish(id: string): Promise<void> {
  const { rootId } = await world.session(id);
  await world.store.write(rootId, async (tx) => {
    const now = Date.now();
    for (const message of await tx.messages.ofSession(id, ["queued", "taken"]))
      await tx.messages.move(message.id, ["queued", "taken"], { status: "landed" });
    const turn = await tx.turns.running(id);
    if (turn !== null)
      await tx.turns.patchRunning(turn.id, turn.fence, { status: "completed", settledAt: now });
    const row = (await tx.sessions.byId(id))!;
    await closeRound(tx, row, { outcome: "completed", reason: null, by: null, now });
  });
}

const open = async (parent: string): Promise<number> =>
  (await world.store.read.sessions.openChildren(parent)).length;

describe("a finished child that a message would open again", () => {
  it("needs a place among its siblings, whichever way the message comes", async () => {
    const parent = await root();
    const done: string[] = [];
    for (let at = 0; at < 5; at++) {
      const child = await spawn(parent);
      await finish(child);
      done.push(child);
    }
    const [a, b, c, d, e] = done as [string, string, string, string, string];
    const self = await me(parent);
    await world.ask("tell", self, { id: a, message: "more", deliverAs: "followUp" });
    await world.ask("prompt", PERSON, { id: b, prompt: "more" });
    assert.equal(await open(parent), 2);
    const ended = (await world.store.read.triggers.ofSession(c)).find(
      (each) => each.type === "session_complete",
    )!;
    const refusals = [
      await world.refused("tell", self, { id: c, message: "more", deliverAs: "followUp" }),
      await world.refused("prompt", PERSON, { id: d, prompt: "more" }),
      await world.refused("respond", self, { id: ended.id, action: "followUp", response: "more" }),
      await world.refused("fire", self, { id: e, type: "go", payload: {}, deliverAs: "followUp" }),
    ];
    for (const refusal of refusals) {
      assert.equal(refusal?.code, "limit_children");
      assert.match(refusal.message, /2 of 2 children are at work.*Wait for one/);
    }
    assert.equal(await open(parent), 2);
    assert.equal((await world.store.read.triggers.byId(ended.id))?.status, "open", "nothing was changed");
  });

  it("needs a place in its family", async () => {
    const parent = await root();
    const [first, last] = [await spawn(parent), await spawn(parent)];
    await finish(last);
    await spawn(first);
    await spawn(first);
    const refusal = await world.refused("tell", await me(parent), {
      id: last,
      message: "x",
      deliverAs: "followUp",
    });
    assert.equal(refusal?.code, "limit_sessions");
  });

  it("needs none where it is at work already", async () => {
    const parent = await root();
    const [first] = [await spawn(parent), await spawn(parent)];
    const told = await world.ask("tell", await me(parent), {
      id: first,
      message: "x",
      deliverAs: "followUp",
    });
    assert.equal(told.sessionId, first);
  });
});

describe("a chain", () => {
  const chain = (steps: number) => ({
    mode: "chain" as const,
    capMs: 0,
    tasks: Array.from({ length: steps }, (_, at) => ({ task: `step ${at} {previous}` })),
  });

  it("is refused where all of its steps together would be too many", async () => {
    const refusal = await world.refused("subagent", await me(await root()), chain(7));
    assert.equal(refusal?.code, "limit_rate");
    assert.match(refusal.message, /would add 7/);
  });

  it("ends where others have spawned as often as the tree may meanwhile, and says so", async () => {
    const parent = await root();
    await world.ask("subagent", await me(parent), chain(4));
    const [first] = await world.store.read.sessions.children(parent);
    for (let at = 0; at < 5; at++) await finish(await spawn(parent));
    await world.take(first!.id);
    await finish(first!.id);
    const steps = (await world.store.read.sessions.children(parent)).filter(
      (each) => typeof each.spawnConfig["chainId"] === "string",
    );
    assert.equal(steps.length, 1);
    const why = "its chain ended here, 3 steps before its end: limit_rate";
    assert.equal(steps[0]!.outcomeReason, why);
    const told = await world.store.read.messages.ofSession(parent, ["queued"]);
    const callback = told.find((each) => each.metadata["childSessionId"] === first!.id);
    assert.equal((callback?.data as { reason?: string } | null)?.reason, why);
  });
});
