import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLog } from "../../log.ts";
import type { Query } from "../sql.ts";
import { IndexUpkeep, type UpkeepSteps } from "./upkeep.ts";

const NO_DATABASE: Query = {
  all: async () => [],
  get: async () => null,
  run: async () => 0,
};

function upkeepOf(steps: Pick<UpkeepSteps, "index" | "merge">): IndexUpkeep {
  return new IndexUpkeep((work) => work(NO_DATABASE), { ...steps, indexMs: 4, isShared: false }, silentLog);
}

describe("the upkeep of the search index", () => {
  it("indexes entries that were added while the last step found none", async () => {
    const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const answer = Promise.withResolvers<number>();
    let calls = 0;
    const upkeep = upkeepOf({
      index: async () => {
        asked[calls]?.resolve();
        calls += 1;
        return calls === 1 ? answer.promise : 0;
      },
      merge: async () => false,
    });
    await asked[0]!.promise;
    upkeep.behind();
    answer.resolve(0);
    await asked[1]!.promise;
    await upkeep.close();
    assert.equal(calls, 2);
  });

  it("merges at the eighth part, one step at a time, until nothing is left to merge", async () => {
    const done = Promise.withResolvers<void>();
    const quiet: boolean[] = [];
    let atOnce = 0;
    const upkeep = upkeepOf({
      index: async () => 0,
      merge: async (_q, { isQuiet }) => {
        atOnce += 1;
        assert.equal(atOnce, 1);
        await Promise.resolve();
        atOnce -= 1;
        quiet.push(isQuiet);
        if (quiet.length === 3) done.resolve();
        return quiet.length < 3;
      },
    });
    for (let part = 0; part < 8; part++) {
      assert.deepEqual(quiet, []);
      upkeep.grown();
      upkeep.committed(1);
    }
    await done.promise;
    await upkeep.close();
    assert.deepEqual(quiet, [false, false, false]);
  });
});
