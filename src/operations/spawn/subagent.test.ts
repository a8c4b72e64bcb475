import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CallerContext } from "../port.ts";
import { OPERATIONS } from "../../contract/index.ts";
import { closeRound } from "../../kernel/round.ts";
import { subagentReply } from "../../server/mcp/subagent.ts";
import { waitReply } from "../../server/mcp/wait.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { openWorld, PERSON } from "../testing/random-trees.ts";
import type { World } from "../testing/random-trees.ts";
import { encodeCursor } from "../wait/cursor.ts";

const CALL = () => ({ signal: new AbortController().signal, callId: null });
const WORDS = { unread: 0, isWakeable: true, isSourceForm: false, note: "" };

async function withParent(use: (world: World, parent: string) => Promise<void>): Promise<void> {
  const world = await openWorld();
  try {
    const { session } = await world.ask("create", PERSON, { prompt: "x", cwd: world.folder });
    await world.take(session.id);
    await use(world, session.id);
  } finally {
    await world.close();
  }
}

async function as(world: World, id: string): Promise<CallerContext> {
  const { rootId, fence } = await world.session(id);
  return world.known({ kind: "session", id, rootId, fence });
}

/** Returns the newest child as soon as there are `count` of them. */
async function childOf(world: World, parent: string, count: number): Promise<SessionRecord> {
  const { promise, resolve } = Promise.withResolvers<SessionRecord>();
  const look = async (): Promise<void> => {
    const children = await world.store.read.sessions.children(parent);
    if (children.length >= count) resolve(children.at(-1)!);
  };
  const off = world.store.onCommit(() => void look());
  await look();
  return promise.finally(off);
}

/** Ends the session's turn with this text. That also ends its round. */
async function complete(world: World, id: string, text: string): Promise<void> {
  const { rootId } = await world.session(id);
  await world.store.write(rootId, async (tx) => {
    const open = ["queued", "taken"] as const;
    for (const message of await tx.messages.ofSession(id, open))
      await tx.messages.move(message.id, open, { status: "landed" });
    const turn = (await tx.turns.running(id))!;
    const settled = { status: "completed", settledAt: Date.now(), lastAssistantMessage: text } as const;
    await tx.turns.patchRunning(turn.id, turn.fence, settled);
    const session = (await tx.sessions.byId(id))!;
    await closeRound(tx, session, { outcome: "completed", reason: null, by: null, now: Date.now() });
  });
}

describe("subagent", () => {
  it("returns early where a child asks, with the question, its id and how to answer it", async () => {
    await withParent(async (world, parent) => {
      const input = { mode: "parallel", capMs: 60_000, tasks: [{ task: "look" }] } as never;
      const replying = world.operations.subagent(await as(world, parent), input, CALL());
      const child = await childOf(world, parent, 1);
      await world.take(child.id);
      const question = { questions: [{ question: "Which dataset?", options: ["small", "full"] }], capMs: 0 };
      const { triggerId } = await world.ask("ask", await as(world, child.id), question);
      const output = await replying;
      assert.equal(output.needsYou[0]?.triggerId, triggerId);
      assert.equal(output.taken.length, 1, "the reply carries the question's message");
      const text = subagentReply(output, WORDS);
      const id = output.needsYou[0]?.deliveryId;
      assert.deepEqual(JSON.parse(text.split("\n")[0]!).needs_you, [child.shortId]);
      assert.match(text, /asks and waits\. Options: small, full\.[^]*Which dataset\?/);
      assert.match(
        text,
        new RegExp(`Next: respond_to_trigger\\("${id}", …\\) or escalate_trigger\\("${id}"\\)`),
      );
      const again = await world.ask("waitChildren", await as(world, parent), {
        cursor: output.cursor!,
        capMs: 0,
      });
      assert.deepEqual(again.needsYou, [], "what was shown does not wake the next wait");
      assert.equal(again.working.length, 1);
    });
  });

  it("of a chain is followed to its last step, also by the cursor that it gave at its first", async () => {
    await withParent(async (world, parent) => {
      const tasks = ["one", "two {previous}", "three {previous}"].map((task) => ({ task }));
      const me = await as(world, parent);
      const output = await world.ask("subagent", me, { mode: "chain", capMs: 0, tasks });
      const wait = (): Promise<Awaited<ReturnType<typeof world.operations.waitChildren>>> =>
        world.ask("waitChildren", me, { cursor: output.cursor!, capMs: 0 });
      for (const [index, answer] of ["first", "second"].entries()) {
        const step = await childOf(world, parent, index + 1);
        await world.take(step.id);
        await complete(world, step.id, answer);
        const { done, working } = await wait();
        assert.deepEqual(done, [], `step ${index + 1} is not the chain's end`);
        const next = await childOf(world, parent, index + 2);
        assert.deepEqual(
          working.map((each) => each.sessionId),
          [next.id],
        );
      }
      const last = await childOf(world, parent, 3);
      await world.take(last.id);
      await complete(world, last.id, "third and last");
      const end = await wait();
      assert.deepEqual(
        end.done.map(({ sessionId, result }) => [sessionId, result]),
        [[last.id, "third and last"]],
      );
      assert.equal(end.taken.length, 1, "the one callback of the chain");
      assert.match(waitReply(end, WORDS), /third and last/);
    });
  });

  it("gives a cursor that wait_session takes, however many children and questions it holds", () => {
    const short = "0199c0de";
    const ids = Array.from({ length: 64 }, () => short);
    const shown = Array.from({ length: 200 }, () => short);
    const cursor = encodeCursor({ ids, misses: 0, shown });
    assert.equal(OPERATIONS.waitChildren.input.safeParse({ cursor }).success, true);
  });
});
