import assert from "node:assert/strict";
import test from "node:test";
import type { Moment } from "../src/kernel/deps.ts";
import { type DaemonSetup, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants } from "./support/family.ts";

const family = (): string =>
  [
    `sim> tool spawn_session ${JSON.stringify({ name: "kid", prompt: "sim> think hm\nsim> sleep 50\nsim> say kid done" })}`,
    "sim> say started",
  ].join("\n");

/** Where the daemon dies, for the n-th time it comes there. */
const TABLE: readonly { moment: Moment; count: number; what: string }[] = [
  { moment: "spawn.parsed", count: 1, what: "1: the tool call has arrived" },
  { moment: "spawn.decided", count: 1, what: "2: it is decided what the child may do" },
  { moment: "spawn.committed", count: 1, what: "3 and 4: the child is durable, nobody has been answered" },
  { moment: "turn.claimed", count: 2, what: "5 and 6: the child's turn is claimed and its message taken" },
  { moment: "agent.started", count: 2, what: "7: the child's agent runs, its own id is not stored" },
  { moment: "agent.identified", count: 2, what: "7: the child's agent is known, nothing was sent" },
  { moment: "prompt.sent", count: 2, what: "8: the child's prompt is on its way" },
  { moment: "entries.appended", count: 1, what: "8: some work is stored" },
  { moment: "outcome.received", count: 1, what: "9: the parent's outcome is known and not stored" },
  { moment: "outcome.received", count: 2, what: "9: the second outcome is known and not stored" },
  { moment: "settle.committed", count: 1, what: "10: settled, nobody woken" },
  { moment: "settle.committed", count: 2, what: "10: settled with the callback, nobody woken" },
  { moment: "turn.claimed", count: 3, what: "11: the parent has taken the callback" },
  { moment: "prompt.sent", count: 3, what: "11: the callback is on its way to the parent" },
];

export async function crashCase(setup: DaemonSetup, row: (typeof TABLE)[number]): Promise<void> {
  const home = new TestHome(setup);
  try {
    const client = await home.start({ crashAt: row });
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: family() });
    await home.ended();
    const after = await home.start();
    const sessions = await allQuiet(after, root.id);
    assert.equal(sessions.length, 2, "the child exists once");
    assert.deepEqual(
      sessions.map((each) => [each.status, each.outcome]),
      [
        ["idle", "completed"],
        ["idle", "completed"],
      ],
    );
    await checkInvariants(after, root.id);
    const told = await callbacksTo(after, root.id);
    assert.equal(told.length, 1, "the parent was told once");
    assert.match(told[0]!.text, /Child "kid" .* completed/);
    assert.match(told[0]!.text, /kid done/);
    const { messages } = await after.inbox({ id: root.id, all: true });
    assert.ok(messages.every((message) => message.status === "landed"));
  } finally {
    await home.close();
  }
}

for (const row of TABLE) {
  test(`killed at ${row.moment} (${row.count}): ${row.what}; nothing lost, nothing twice`, () =>
    crashCase({}, row));
}
