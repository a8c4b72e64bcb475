import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import type { AskOf, Caller, OperationName, SpawnOutput } from "../../contract/index.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

let world: World;
before(async () => {
  world = await openWorld({ permission: "full" });
});
after(() => world.close());

async function key(more: Partial<AskOf<"createToken">>): Promise<Caller> {
  const given = { name: "ci", can: ["spawn", "answer", "fire", "cancel", "read"] as const, ...more };
  const { secret } = await world.ask("createToken", PERSON, given as AskOf<"createToken">);
  return (await world.gate.identify(secret))!;
}

const create = (caller: Caller, more: Partial<AskOf<"create">> = {}): Promise<SpawnOutput> =>
  world.ask("create", caller, { prompt: "work", cwd: world.folder, ...more });
const refusal = async <N extends OperationName>(name: N, caller: Caller, input: AskOf<N>): Promise<string> =>
  (await world.refused(name, caller, input))?.code ?? "done";

describe("an API key", () => {
  it("that may spawn is made only with its folders, which are absolute", async () => {
    const ask = (more: object) => refusal("createToken", PERSON, { name: "ci", can: ["spawn"], ...more });
    assert.equal(await ask({}), "invalid_input");
    assert.equal(await ask({ roots: ["here"] }), "invalid_input");
    assert.equal(await ask({ roots: ["/"] }), "done");
    assert.equal(await refusal("createToken", PERSON, { name: "ci", can: ["read"] }), "done");
  });

  it("starts no session above its ceiling, and one that names no mode at the ceiling", async () => {
    const ci = await key({ roots: ["/"] });
    const refused = await world.refused("create", ci, { prompt: "x", cwd: world.folder, permission: "full" });
    assert.equal(refused?.code, "permission_too_wide");
    assert.match(refused?.message ?? "", /ceiling of the API key "ci", which is "workspace"/);
    assert.equal((await create(ci)).effective.permission, "workspace");
    const strict = await key({ roots: ["/"], ceiling: "read-only" });
    assert.equal((await create(strict)).effective.permission, "read-only");
    const free = await key({ roots: ["/"], ceiling: "full" });
    assert.equal((await create(free, { permission: "full" })).effective.permission, "full");
    const open = await create(PERSON, { permission: "workspace" });
    const child = await world.ask("spawn", strict, { id: open.session.id, prompt: "x" }).catch((e) => e.code);
    assert.equal(child, "forbidden", "nor below a session that is above its ceiling");
  });

  it("starts no session outside its folders, and neither do those it started", async () => {
    const ci = await key({ roots: [world.inside] });
    for (const cwd of ["/", world.outside, world.folder, `${world.inside}/..`, path.dirname(world.folder)])
      assert.equal(await refusal("create", ci, { prompt: "x", cwd }), "cwd_not_allowed", cwd);
    const { session, effective } = await create(ci, { cwd: world.inside });
    assert.deepEqual(effective.roots, [world.inside]);
    const { token } = (await world.take(session.id))!;
    const self = (await world.gate.identify(token!))!;
    for (const cwd of ["/", world.outside, world.folder])
      assert.equal(
        await refusal("spawn", self, { id: session.id, prompt: "x", cwd }),
        "cwd_not_allowed",
        cwd,
      );
    const child = await world.ask("spawn", self, { id: session.id, prompt: "x" });
    assert.deepEqual(child.effective.roots, [world.inside]);
  });

  it("writes to no session above its ceiling or outside its folders, and may still cancel it", async () => {
    const full = await create(PERSON, { permission: "full" });
    const outside = await create(PERSON, { cwd: world.outside, permission: "workspace" });
    const own = await create(PERSON, { permission: "workspace" });
    const ci = await key({ roots: [world.folder] });
    const writes = (id: string) =>
      [
        ["prompt", { id, prompt: "go" }],
        ["tell", { id, message: "go" }],
        ["fire", { id, type: "ci.done", payload: {} }],
        ["spawn", { id, prompt: "x", permission: "read-only" }],
      ] as const;
    for (const { session } of [full, outside]) {
      for (const [name, input] of writes(session.id))
        assert.equal(await refusal(name, ci, input as never), "forbidden", name);
    }
    for (const [name, input] of writes(own.session.id))
      assert.equal(await refusal(name, ci, input as never), "done", name);
    assert.equal(await refusal("cancel", ci, { id: full.session.id }), "done");
  });

  it("answers no question of a session above its ceiling", async () => {
    const ids = { full: "", workspace: "" };
    for (const permission of ["full", "workspace"] as const) {
      const { session } = await create(PERSON, { permission });
      const { token } = (await world.take(session.id))!;
      const self = (await world.gate.identify(token!))!;
      await world.ask("ask", self, { questions: [{ question: "which?" }], capMs: 0 } as never);
      ids[permission] = (await world.ask("triggers", PERSON, { id: session.id })).triggers[0]!.id;
    }
    const ci = await key({ roots: ["/"] });
    assert.equal(await refusal("respond", ci, { id: ids.full, response: "a" }), "forbidden");
    assert.equal(await refusal("respond", ci, { id: ids.workspace, response: "a" }), "done");
  });
});
