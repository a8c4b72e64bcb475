import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { afterEach, test } from "node:test";
import * as fc from "fast-check";
import { checkedSeed, checkProperty, ONCE_RED, randomFrom, seedsOf } from "./seeds.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const given = process.env["KINFOLD_TEST_SEED"];
const setSeed = (seed: string | undefined): void => {
  if (seed === undefined) delete process.env["KINFOLD_TEST_SEED"];
  else process.env["KINFOLD_TEST_SEED"] = seed;
};
afterEach(() => setSeed(given));

test("each once-red seed says what it found, and its test still exists", () => {
  for (const { file, seed, found } of ONCE_RED) {
    assert.ok(
      existsSync(path.join(ROOT, file)),
      `${file} is gone; move its seeds to the file that replaced it`,
    );
    assert.ok(Number.isInteger(seed) && found.length > 10, `${file}: ${seed}`);
  }
});

test("a property draws the same values in every run", () => {
  setSeed(undefined);
  const draws = (): number[] => {
    const drawn: number[] = [];
    checkProperty(
      import.meta.filename,
      fc.property(fc.nat(), (n) => void drawn.push(n)),
      { numRuns: 5 },
    );
    return drawn;
  };
  assert.deepEqual(draws(), draws());
  const listed = draws();
  setSeed("77");
  assert.notDeepEqual(draws(), listed);
});

test("an asynchronous property that fails rejects, and names its seed", async () => {
  setSeed("77");
  const failing = fc.asyncProperty(fc.nat(), async () => assert.fail("planted"));
  await assert.rejects(checkProperty(import.meta.filename, failing), /seed: 77/);
});

test("KINFOLD_TEST_SEED replaces the listed seeds, and only a whole number is a seed", () => {
  setSeed("12");
  assert.deepEqual(seedsOf(import.meta.filename), [12]);
  for (const wrong of ["", "x", "1.5", "-1", "4294967296"])
    assert.throws(() => checkedSeed(wrong), /not a seed/);
});

test("the same seed gives the same numbers, and another seed others", () => {
  const five = (seed: number): number[] => Array.from({ length: 5 }, randomFrom(seed));
  assert.deepEqual(five(3), five(3));
  assert.notDeepEqual(five(3), five(4));
  assert.ok(five(3).every((n) => n >= 0 && n < 1));
});
