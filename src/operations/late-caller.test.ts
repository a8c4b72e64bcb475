import assert from "node:assert/strict";
import { test } from "node:test";
import { type Caller, Refusal } from "../contract/index.ts";
import { type Watched, watchWrite } from "../store/testing/watch-write.ts";
import { openWorld, PERSON, type World } from "./testing/random-trees.ts";

type Self = Caller & { kind: "session" };

/**
 * Everything with which a session writes: its calls, and writes that follow after a call has returned. `nth`
 * says which write of the session is watched.
 */
const WRITERS: Record<string, { nth?: number; run: (world: World, self: Self) => Promise<unknown> }> = {
  "saves a checkpoint": {
    run: ({ ask }, self) => ask("checkpoint", self, { summary: "so far", constraints: {} }),
  },
  "says that its turn waits": { nth: 2, run: askInVain },
  "says that its turn waits no longer": { nth: 3, run: askInVain },
  "cancels a child": { nth: 2, run: (world, self) => cancelChild(world, self, false) },
  "stops the turn of a child": {
    nth: 3,
    run: (world, self) => cancelChild(world, self, true),
  },
  "gives back what a lost reply carried": {
    nth: 3,
    async run({ gate, ask, store }, self) {
      const turn = await store.read.turns.running(self.id);
      await ask("prompt", PERSON, { id: self.id, prompt: "more" });
      const [message] = await store.read.messages.queued(self.id, 1);
      assert.ok(message !== undefined && turn !== null);
      const taken = { status: "taken", carrier: "tool", turnId: turn.id } as const;
      await store.write(self.rootId, (tx) => tx.messages.move(message.id, ["queued"], taken));
      await gate.giveBack(self, [message.id]);
    },
  },
  "notes that the reply to a spawn was lost": {
    nth: 2,
    async run({ gate, ask }, self) {
      const { session } = await ask("spawn", self, { id: self.id, prompt: "child" });
      await gate.spawnReplyLost(self, session.id);
    },
  },
};

for (const [name, writer] of Object.entries(WRITERS)) {
  test(`a process that was replaced changes nothing where it ${name}`, async () => {
    const current = await watch(writer, false);
    assert.notDeepEqual(current.after, current.before, "with its own fence it writes");
    const late = await watch(writer, true);
    assert.deepEqual(late.after, late.before);
  });
}

function askInVain({ ask }: World, self: Self): Promise<unknown> {
  return ask("ask", self, { questions: [{ question: "which one?" }], timeoutMs: 10, capMs: 10 });
}

async function cancelChild({ ask, take }: World, self: Self, turnOnly: boolean): Promise<void> {
  const { session } = await ask("spawn", self, { id: self.id, prompt: "child" });
  if (turnOnly) await take(session.id);
  await ask("cancel", self, { id: session.id, turnOnly });
}

/**
 * Runs the writer in a session whose turn is running. Returns the tree before and after the watched write.
 */
async function watch(writer: (typeof WRITERS)[string], isLate: boolean): Promise<Watched> {
  const world = await openWorld();
  try {
    const { session } = await world.ask("create", PERSON, { prompt: "work", cwd: world.folder, name: "r" });
    const taken = await world.take(session.id);
    assert.ok(taken !== null);
    const { id, rootId } = session;
    const seen = watchWrite(world.store, { rootId, sessionId: id, nth: writer.nth ?? 1, isLate });
    try {
      await writer.run(world, { kind: "session", id, rootId, fence: taken.fence });
    } catch (error) {
      assert.ok(isLate && error instanceof Refusal && error.code === "unauthorized", String(error));
    }
    return await seen;
  } finally {
    await world.close();
  }
}
