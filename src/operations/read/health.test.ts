import assert from "node:assert/strict";
import { test } from "node:test";
import type { Caller } from "../../contract/index.ts";
import { openWorld, PERSON } from "../testing/random-trees.ts";

test("a caller limited to one scope is told the counts and the usage of that scope alone", async () => {
  const world = await openWorld();
  try {
    for (const scope of ["team", "team", "lab"]) {
      await world.ask("create", PERSON, { prompt: "work", cwd: world.folder, scope });
    }
    const sessions = async (caller: Caller): Promise<number> =>
      (await world.ask("health", caller, {})).counts.sessions;
    const key = (scope: string | null): Caller => ({
      kind: "outside",
      id: "key",
      name: "key",
      can: ["read"],
      scope,
      ceiling: "read-only",
      roots: null,
    });
    assert.equal(await sessions(PERSON), 3);
    assert.equal(await sessions(key(null)), 3);
    assert.equal(await sessions(key("lab")), 1);
    assert.equal(await sessions(key("nowhere")), 0);
    const { counts, usageToday } = await world.ask("health", key("nowhere"), {});
    assert.deepEqual(new Set(Object.values(counts)), new Set([0]));
    assert.deepEqual(usageToday, { tokens: 0, usd: null });
  } finally {
    await world.close();
  }
});
