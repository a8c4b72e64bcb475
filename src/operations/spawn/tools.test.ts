import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  type Agent,
  type Caller,
  type SpawnOutput,
  OPERATIONS,
  type OperationName,
  type OperationSpec,
} from "../../contract/index.ts";
import { aProfile, openWorld, type World } from "../testing/random-trees.ts";

const person: Caller = { kind: "person", id: "p", name: "person" };
const LEVELS = { none: "none", asked: "asked", agent: "agent", os: "os" } as const;

let world: World;
before(async () => {
  world = await openWorld();
  const node = await world.store.nodes.byName("local");
  const fake = node!.agents[0]!;
  const like = (name: string, level: keyof typeof LEVELS, more: Partial<Agent> = {}): Agent => {
    const { tools: _tools, servers: _servers, ...bare } = fake;
    const enforces = { "read-only": level, ask: level, workspace: level, full: "agent" } as const;
    return { ...bare, name, enforces, ...more };
  };
  await world.store.nodes.publish([
    fake,
    like("boxed", "os", { tools: ["Read"], servers: "named" }),
    like("gated", "agent", { tools: ["Read"], servers: "ours" }),
    like("asking", "asked"),
    like("loose", "none"),
  ]);
  world.setProfiles([
    aProfile({ name: "reader", tools: ["Read"] }),
    aProfile({ name: "worker", disallowedTools: ["spawn_session"] }),
    aProfile({ name: "ours", tools: ["Read", "mcp__kinfold"] }),
    aProfile({ name: "alone", mcp: [] }),
    aProfile({ name: "linked", mcp: ["github", "jira"] }),
  ]);
});
after(() => world.close());

const create = (agent: string, more: object = {}): Promise<SpawnOutput> =>
  world.ask("create", person, { agent, prompt: "x", cwd: world.folder, ...more }) as never;
const spawnUnder = (parent: SpawnOutput, agent: string, more: object = {}) =>
  world.refused("spawn", person, { id: parent.session.id, agent, prompt: "x", ...more });

describe("a child's agent", () => {
  it("holds its mode no weaker than its parent's does, or the spawn is refused with those that can", async () => {
    const parent = await create("boxed", { permission: "workspace" });
    assert.equal(parent.effective.enforcement, "os");
    assert.equal(await spawnUnder(parent, "boxed"), null);
    for (const agent of ["gated", "asking"]) {
      const refusal = await spawnUnder(parent, agent);
      assert.equal(refusal?.code, "cannot_enforce");
      assert.deepEqual(refusal?.details["agents"], ["fake", "boxed"]);
      assert.match(refusal?.message ?? "", /restricted no less than its parent.*fake, boxed/s);
    }
    const gated = await create("gated", { permission: "ask" });
    assert.equal(await spawnUnder(gated, "boxed"), null);
    assert.equal((await spawnUnder(gated, "asking"))?.code, "cannot_enforce");
  });

  it("may be any where the parent may do everything", async () => {
    const parent = await create("boxed", { permission: "full" });
    for (const agent of ["gated", "asking"])
      assert.equal(await spawnUnder(parent, agent, { permission: "ask" }), null);
  });

  it("is not started in a mode that nothing would hold it to, whoever asks", async () => {
    const refusal = await world.refused("create", person, {
      agent: "loose",
      prompt: "x",
      cwd: world.folder,
      permission: "ask",
    });
    assert.equal(refusal?.code, "cannot_enforce");
    assert.match(refusal?.message ?? "", /no mode "ask": it can be started with full/);
  });
});

describe("lists of tools and of MCP servers", () => {
  it("are refused for an agent that cannot be restricted to them", async () => {
    const reader = { profile: "reader", permission: "full" as const };
    assert.equal((await create("gated", reader)).effective.tools?.join(), "Read");
    const refusal = await world.refused("create", person, {
      agent: "asking",
      prompt: "x",
      cwd: world.folder,
      ...reader,
    });
    assert.equal(refusal?.code, "cannot_enforce");
    assert.deepEqual(refusal?.details["agents"], ["fake", "boxed", "gated"]);
  });

  it("narrow downward and never widen", async () => {
    const parent = await create("boxed", { profile: "linked" });
    assert.deepEqual(parent.effective.mcp, ["github", "jira"]);
    const child = (await world.ask("spawn", person, {
      id: parent.session.id,
      agent: "boxed",
      prompt: "x",
    })) as unknown as SpawnOutput;
    assert.deepEqual(child.effective.mcp, ["github", "jira"]);
    const alone = await create("gated", { profile: "alone" });
    assert.deepEqual(alone.effective.mcp, []);
    const refusal = await world.refused("create", person, {
      agent: "gated",
      prompt: "x",
      cwd: world.folder,
      profile: "linked",
    });
    assert.match(refusal?.message ?? "", /Kinfold's own MCP server/);
  });

  it("give none of Kinfold's tools where they name none, on every surface", async () => {
    const reader = await create("fake", { profile: "reader" });
    const { token } = (await world.take(reader.session.id))!;
    const caller = (await world.gate.identify(token!))!;
    const { withheld } = caller;
    for (const [operation, { mcp: name }] of Object.entries(OPERATIONS) as [OperationName, OperationSpec][]) {
      if (name === undefined) continue;
      assert.ok(withheld.includes(name), name);
      const run = world.operations[operation] as (...given: unknown[]) => Promise<unknown>;
      await assert.rejects(run(caller, {}, {}), { code: "tool_not_given" }, name);
    }
  });

  it("give of Kinfold's whole server what the parent has of it", async () => {
    const worker = await create("fake", { profile: "worker" });
    const child = (await world.ask("spawn", person, {
      id: worker.session.id,
      profile: "ours",
      prompt: "x",
    })) as unknown as SpawnOutput;
    assert.equal(child.effective.tools?.includes("ask_user_question"), true);
    assert.equal(child.effective.tools?.includes("mcp__kinfold"), false);
    for (const name of ["spawn_session", "subagent", "create_session"])
      assert.equal(child.effective.tools?.includes(name), false, name);
  });

  it("keep Kinfold's own tools from a session on every surface", async () => {
    const worker = await create("fake", { profile: "worker" });
    const { token } = (await world.take(worker.session.id))!;
    const caller = (await world.gate.identify(token!))!;
    const sight = caller;
    assert.equal(sight.role, "leaf");
    assert.ok(sight.withheld.includes("spawn_session"));
    const refusal = await world.refused("spawn", caller, { id: worker.session.id, prompt: "x" });
    assert.equal(refusal?.code, "tool_not_given");
    const task = { tasks: [{ task: "x" }] };
    assert.equal((await world.refused("subagent", caller, task))?.code, "tool_not_given");
  });
});

describe("a session at the depth limit", () => {
  it("is offered the tools of a leaf, and may still act on children it has, but spawns none", async () => {
    const root = await create("fake");
    const spawned = async (id: string): Promise<string> =>
      ((await world.ask("spawn", person, { id, prompt: "x" })) as unknown as SpawnOutput).session.id;
    const id = await spawned(root.session.id);
    const child = await spawned(id);
    const { token } = (await world.take(id))!;
    const { effective, rootId } = await world.session(id);
    const lowered = { ...effective, counts: { depthMax: 1 } };
    await world.store.write(rootId, (tx) => tx.sessions.patch(id, { effective: lowered }));
    const caller = (await world.gate.identify(token!))!;
    assert.deepEqual([caller.role, caller.withheld], ["leaf", []]);
    assert.equal((await world.refused("spawn", caller, { id, prompt: "x" }))?.code, "limit_depth");
    assert.equal(await world.refused("tell", caller, { id: child, message: "x" }), null);
    assert.equal(await world.refused("cancel", caller, { id: child }), null);
    const toParent = await world.refused("tell", caller, { id: root.session.id, message: "x" });
    assert.equal(toParent?.code, "not_a_child");
  });
});
