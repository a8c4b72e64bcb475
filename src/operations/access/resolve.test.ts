import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Session } from "../../contract/index.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

async function named(name: string, isOpen: boolean): Promise<Session> {
  const { session } = await world.ask("create", PERSON, { prompt: "work", cwd: world.folder, name });
  await world.store.write(session.rootId, (tx) => tx.sessions.patch(session.id, { roundOpen: isOpen }));
  return session;
}

async function meant(ref: string): Promise<string> {
  return (await world.ask("get", PERSON, { id: ref })).session.id;
}

describe("a session that is meant", () => {
  it("by a name that several have is the one at work, else the newest", async () => {
    const working = await named("build", true);
    const newest = await named("build", false);
    assert.equal(await meant("build"), working.id);
    await world.store.write(working.rootId, (tx) => tx.sessions.patch(working.id, { roundOpen: false }));
    assert.equal(await meant("build"), newest.id);
  });

  it("by a name that several at work have is named by its id", async () => {
    const [one, two] = [await named("twice", true), await named("twice", true)];
    await assert.rejects(world.ask("get", PERSON, { id: "twice" }), (error: Error & { code: string }) => {
      assert.equal(error.code, "ambiguous_reference");
      assert.ok(error.message.includes(one.shortId) && error.message.includes(two.shortId));
      return true;
    });
  });

  it("is found by the beginning of its short id, where no other begins so", async () => {
    const one = await named("begun", false);
    assert.equal(await meant(one.shortId.slice(0, 6)), one.id);
    await assert.rejects(meant(one.shortId.slice(0, 3)), { code: "not_found" });
  });

  it("is not found by a name that looks like the beginning of another's id", async () => {
    const one = await named("other", false);
    const two = await named(one.shortId.slice(0, 5), false);
    assert.equal(await meant(one.shortId.slice(0, 5)), two.id);
  });
});
