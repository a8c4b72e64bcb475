import assert from "node:assert/strict";
import { mkdirSync, realpathSync } from "node:fs";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { folderScope } from "../../system/folder.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

let world: World;
let top: string;
let below: string;
before(async () => {
  world = await openWorld();
  top = path.join(realpathSync(world.folder), "repository");
  below = path.join(top, "packages", "a");
  mkdirSync(below, { recursive: true });
  mkdirSync(path.join(top, ".git"));
});
after(() => world.close());

const root = async (cwd: string, more: object = {}) =>
  (await world.ask("create", PERSON, { prompt: "find the word", cwd, ...more })).session;

describe("a session that names no scope", () => {
  it("has that of its git top level, else of its folder, and its descendants keep it", async () => {
    assert.equal((await root(top)).scope, top);
    assert.equal((await root(below)).scope, top);
    assert.equal((await root(world.outside)).scope, realpathSync(world.outside));
    assert.equal((await root(below, { scope: "team" })).scope, "team");
    const { id } = await root(below);
    const { session } = await world.ask("spawn", PERSON, { id, prompt: "x", cwd: world.outside });
    assert.equal(session.scope, top);
    const attached = await world.ask("attach", PERSON, { client: "claude", cwd: below });
    assert.equal(attached.session.scope, top);
  });

  it("finds and lists what works in the same repository, and nothing of other folders", async () => {
    const here = await root(below);
    const beside = await root(top);
    const away = await root(world.outside);
    const { token } = (await world.take(here.id))!;
    const caller = (await world.gate.identify(token!))!;
    for (const { id } of [beside, away]) await world.take(id);
    const { sessions } = await world.ask("list", caller, { limit: 200 });
    assert.ok(sessions.some(({ id }) => id === beside.id));
    assert.equal(
      sessions.some(({ id }) => id === away.id),
      false,
    );
    const { hits } = await world.ask("search", caller, { query: "word", id: "all", limit: 50 });
    assert.ok(hits.some(({ sessionId }) => sessionId === beside.id));
    assert.equal(
      hits.some(({ sessionId }) => sessionId === away.id),
      false,
    );
    assert.equal((await world.refused("get", caller, { id: away.id }))?.code, "not_found");
  });

  it("of two long paths that begin alike has two scopes", () => {
    const long = `/${"a".repeat(100)}/${"b".repeat(200)}`;
    const scopes = [folderScope(long), folderScope(`${long}c`)];
    assert.equal(new Set(scopes).size, 2);
    for (const scope of scopes) assert.ok(scope.length <= 190);
  });

  it("is reached by a key without a scope, and one with a scope starts its roots there", async () => {
    const key = async (scope: string | null) => {
      const given = { name: "ci", can: ["read", "spawn"] as ["read", "spawn"], scope, roots: ["/"] };
      return (await world.gate.identify((await world.ask("createToken", PERSON, given)).secret))!;
    };
    const { id } = await root(below);
    assert.equal(await world.refused("get", await key(null), { id }), null);
    assert.equal((await world.refused("get", await key("team"), { id }))?.code, "not_found");
    const { session } = await world.ask("create", await key("team"), { prompt: "x", cwd: below });
    assert.equal(session.scope, "team");
  });
});
