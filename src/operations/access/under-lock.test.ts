import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { AskOf, OperationName } from "../../contract/index.ts";
import { beforeNextWrite } from "../../store/testing/around-writes.ts";
import { type Node, openWorld, plant, type World } from "../testing/random-trees.ts";

const ROOT = {
  parent: 0,
  isRoot: true,
  isNamed: false,
  profile: "default",
  asks: false,
  fate: "lives",
  scope: "team",
} as const;

let world: World;
before(async () => {
  world = await openWorld({});
});
after(() => world.close());

/** Every operation by which a session can change something, with its input. */
function writesOf(child: Node): { [N in OperationName]?: AskOf<N> } {
  return {
    spawn: { id: child.parent!.id, prompt: "x", inherit: "none" },
    tell: { id: child.id, message: "hi" },
    fire: { id: child.id, type: "progress", payload: {} },
    ask: { questions: [{ question: "Which?" }], capMs: 0 },
    planReview: { title: "Plan", steps: [{ title: "One" }], capMs: 0 },
    checkpoint: { summary: "so far" },
    respond: { id: child.triggerId!, response: "this" },
    escalate: { id: child.triggerId! },
  };
}

async function family(): Promise<{ parent: Node; child: Node }> {
  const [parent, child] = await plant(world, [ROOT, { ...ROOT, isRoot: false, asks: true }]);
  return { parent: parent!, child: child! };
}

/** Changes the caller's row between the lookup of its token and the lock of its write. */
async function refusedAfter(
  name: OperationName,
  { parent, child }: { parent: Node; child: Node },
  patch: object,
): Promise<string | undefined> {
  const { rootId, id } = parent;
  beforeNextWrite(world.store, () => world.store.write(rootId, (tx) => tx.sessions.patch(id, patch)));
  const input = writesOf(child)[name] as never;
  return (await world.refused(name, parent.caller, input))?.code;
}

describe("a session that asks to change something", () => {
  for (const name of Object.keys(writesOf({ parent: {} } as Node)) as OperationName[]) {
    it(`and was cancelled meanwhile is refused: ${name}`, async () => {
      const ended = { endedAt: 5, endReason: "cancelled" };
      const code = await refusedAfter(name, await family(), ended);
      assert.equal(code, name === "spawn" ? "parent_ended" : "session_ended");
    });

    it(`and whose process was replaced meanwhile is refused: ${name}`, async () => {
      assert.equal(await refusedAfter(name, await family(), { fence: 7 }), "unauthorized");
    });
  }

  it("and was moved to another scope meanwhile has its child there", async () => {
    const { parent, child } = await family();
    const code = await refusedAfter("spawn", { parent, child }, { scope: "lab" });
    assert.equal(code, undefined);
    const spawned = (await world.store.read.sessions.children(parent.id)).at(-1);
    assert.notEqual(spawned?.id, child.id);
    assert.equal(spawned?.scope, "lab");
  });

  it("and was moved to another scope meanwhile reaches no listener of its old one", async () => {
    const listener = { ...ROOT, profile: "listener" } as const;
    const [caller, target] = (await plant(world, [ROOT, listener])) as [Node, Node];
    const event = { id: target.id, type: "ci.done", payload: {} };
    assert.equal(await world.refused("fire", caller.caller, event), null);
    const messages = await world.store.read.messages.queuedCount(target.id);
    beforeNextWrite(world.store, () =>
      world.store.write(caller.rootId, (tx) => tx.sessions.patch(caller.id, { scope: "lab" })),
    );
    assert.equal((await world.refused("fire", caller.caller, event))?.code, "not_a_child");
    assert.equal(await world.store.read.messages.queuedCount(target.id), messages);
  });
});
