import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Moment } from "../src/kernel/deps.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { type DaemonSetup, TestHome } from "./support/daemon.ts";
import { allQuiet, checkInvariants } from "./support/family.ts";
import { script } from "./support/script.ts";

const CHILDREN = 4;
const LIFE_MS = 2_000;

/**
 * Each daemon dies when it reaches its moment for the nth time. By then only some of the children have
 * reached that moment.
 */
const DEATHS: readonly (readonly [Moment, number])[] = [
  ["agent.identified", 2],
  ["prompt.sent", 3],
  ["resume.claimed", 2],
  ["resume.loaded", 2],
  ["prompt.sent", 2],
  ["entries.appended", 2],
];

async function story(setup: DaemonSetup): Promise<void> {
  const home = new TestHome(setup);
  try {
    let client = await home.start();
    let accepted = 0;
    const prompt = script("say ready");
    const { session: root } = await client.create({ cwd: home.work, prompt });
    await allQuiet(client, root.id);
    await home.stop();
    for (const [at, [moment, count]] of DEATHS.entries()) {
      const starting = home.start({ crashAt: { moment, count } });
      if (at === 0) {
        client = await starting;
        const kid = (_: unknown, index: number) =>
          client.spawn({
            id: root.id,
            name: `kid-${index}`,
            prompt: script("say one", "sleep 3000", "say two"),
          });
        const spawned = await Promise.allSettled(Array.from({ length: CHILDREN }, kid));
        accepted = spawned.filter(({ status }) => status === "fulfilled").length;
      } else {
        // The daemon may die before it is up.
        await starting.catch(() => undefined);
      }
      // If every child is already past this moment, a timer kills the daemon instead.
      const killing = setTimeout(() => home.signal("SIGKILL"), LIFE_MS);
      await home.ended();
      clearTimeout(killing);
    }
    client = await home.start();
    const sessions = await allQuiet(client, root.id);
    assert.ok(sessions.length > accepted, `${sessions.length} sessions, ${accepted} children were accepted`);
    for (const session of sessions) {
      const { turns } = await client.turns({ id: session.id });
      assert.deepEqual(
        turns.filter((turn) => turn.status === "interrupted"),
        [],
      );
      assert.equal(session.outcome, "completed");
    }
    await checkInvariants(client, root.id);
  } finally {
    await home.close();
  }
}

describe("children that called no tool, with six kills of their daemon", () => {
  test("none is interrupted, on SQLite", () => story({}));

  describe("on PostgreSQL", () => {
    let postgres: Awaited<ReturnType<typeof testPostgres>>;
    before(async () => {
      postgres = await testPostgres();
    });
    after(() => postgres.stop());
    test("none is interrupted", async () => story({ store: await postgres.url() }));
  });
});
