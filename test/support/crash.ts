import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Moment } from "../../src/kernel/deps.ts";
import { type Client, type DaemonSetup, TestHome } from "./daemon.ts";
import { allQuiet, checkInvariants } from "./family.ts";

export type Sessions = Awaited<ReturnType<typeof allQuiet>>;

/** One row of the crash table: what runs, when the daemon dies, and what must be true afterwards. */
export interface CrashRow {
  readonly moment: Moment;
  /** The daemon dies the `count`-th time that it reaches the moment. */
  readonly count: number;
  readonly what: string;
  readonly prompt: string;
  /** A call that a client makes before the daemon dies. */
  readonly meanwhile?: (client: Client, rootId: string, home: TestHome) => Promise<unknown>;
  /** The moment at which the restarted daemon dies again. */
  readonly again?: { readonly moment: Moment; readonly count: number };
  readonly check: (client: Client, sessions: Sessions) => Promise<void>;
}

/** Kills a real daemon with SIGKILL at the row's moment, restarts it and checks what must be true then. */
export async function crashCase(setup: DaemonSetup, row: CrashRow): Promise<void> {
  const home = new TestHome(setup);
  try {
    const client = await home.start({ crashAt: row });
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: row.prompt });
    // The call may fail, because this test kills the daemon during the call.
    const calling = row.meanwhile?.(client, root.id, home).catch((error: unknown) => error);
    await home.ended();
    await calling;
    if (row.again !== undefined) {
      // The daemon may die before it is up.
      await home.start({ crashAt: row.again }).catch(() => undefined);
      await home.ended();
    }
    const after = await home.start();
    const sessions = await allQuiet(after, root.id);
    await checkInvariants(after, root.id);
    await checkDelivered(home, after, sessions);
    const leases = new Set(home.agents().map((agent) => agent.lease));
    assert.ok(leases.size <= sessions.length, "no process lives without a session's lease");
    await row.check(after, sessions);
  } finally {
    await home.close();
  }
}

/** Checks that the agent's journal contains each message with the status `landed` exactly once. */
async function checkDelivered(home: TestHome, client: Client, sessions: Sessions): Promise<void> {
  for (const session of sessions) {
    if (session.agentSessionId === null) continue;
    const journal = readFileSync(path.join(home.home, "sim", `${session.agentSessionId}.jsonl`), "utf8");
    const { messages } = await client.inbox({ id: session.id, all: true });
    for (const message of messages) {
      assert.notEqual(message.status, "taken", `${message.kind} stays taken`);
      if (message.status !== "landed" || message.carrier === "tool") continue;
      const found = journal.split("\n").filter((line) => line.includes(`:${message.deliveryId} -->`));
      const users = found.filter((line) => line.startsWith('{"kind":"user"'));
      assert.equal(
        users.length,
        1,
        `${message.kind} ${message.deliveryId} reached the agent ${users.length} times`,
      );
    }
  }
}
