import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Limits } from "../contract/index.ts";
import { type SpawnFacts, spawnLimit } from "./limit.ts";
import { checkProperty } from "../testing/seeds.ts";

const LIMITS = Limits.parse({});
const ROOM: SpawnFacts = {
  parentDepth: 0,
  openChildren: [],
  openSessions: 1,
  spawnsLastMinute: 0,
  spawnsEver: 0,
};
const children = (count: number): { name: string }[] =>
  Array.from({ length: count }, (_, at) => ({ name: `c${at}` }));

for (const [what, last, over, code] of [
  ["generations", { parentDepth: 4 }, { parentDepth: 5 }, "limit_depth"],
  ["open children", { openChildren: children(7) }, { openChildren: children(8) }, "limit_children"],
  ["open sessions", { openSessions: 63 }, { openSessions: 64 }, "limit_sessions"],
  ["spawns in a minute", { spawnsLastMinute: 19 }, { spawnsLastMinute: 20 }, "limit_rate"],
  ["spawns ever", { spawnsEver: 499 }, { spawnsEver: 500 }, "limit_spawns"],
] as const) {
  test(`the last of the ${what} is allowed, the next is refused with the limit and what is used`, () => {
    assert.equal(spawnLimit({ ...ROOM, ...last }, LIMITS), null);
    const refusal = spawnLimit({ ...ROOM, ...over }, LIMITS);
    assert.equal(refusal?.code, code);
    assert.equal(typeof refusal?.details["limit"], "number");
    assert.match(refusal?.message ?? "", /\. [A-Z]/, "it says what next");
  });
}

test("children that stand against another are named, three at most, each on one line", () => {
  const refusal = spawnLimit({ ...ROOM, openChildren: [{ name: "a\nb" }, ...children(9)] }, LIMITS);
  assert.match(refusal?.message ?? "", /\(a b, c0, c1, …\)/);
});

test("a spawn is refused if and only if a limit is reached", () => {
  const facts = fc.record({
    parentDepth: fc.nat(8),
    openChildren: fc.nat(10).map(children),
    openSessions: fc.nat(70),
    spawnsLastMinute: fc.nat(25),
    spawnsEver: fc.nat(600),
  });
  checkProperty(
    import.meta.filename,
    fc.property(facts, (each) => {
      const isOver =
        each.parentDepth >= 5 ||
        each.openChildren.length >= 8 ||
        each.openSessions >= 64 ||
        each.spawnsLastMinute >= 20 ||
        each.spawnsEver >= 500;
      assert.equal(spawnLimit(each, LIMITS) !== null, isOver);
    }),
  );
});
