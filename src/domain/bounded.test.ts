import assert from "node:assert/strict";
import { it } from "node:test";
import { boundedValue } from "./bounded.ts";
import { boundedText } from "../text/fence.ts";

const LIMITS = { charsMax: 100, partsMax: 10, depthMax: 4 };

it("a value within its limits stays as it is", () => {
  const value = { command: "ls", list: [1, null, true, { deep: "x" }] };
  assert.deepEqual(boundedValue(value, LIMITS).value, value);
});

it("of a value with long texts, many parts or many levels only the beginning is kept", () => {
  const long = JSON.stringify(boundedValue({ text: "x".repeat(5_000) }, LIMITS).value);
  assert.ok(long.length < 160 && long.includes("characters more"), long);
  const many = JSON.stringify(
    boundedValue(
      Array.from({ length: 5_000 }, (_, i) => i),
      LIMITS,
    ).value,
  );
  assert.ok(many.length < 100 && many.includes("(cut)"), many);
  let deep: unknown = "bottom";
  for (let level = 0; level < 50_000; level++) deep = { deep };
  assert.match(JSON.stringify(boundedValue(deep, LIMITS).value), /^(?:\{"deep":){4}"… \(cut\)"\}{4}$/);
});

it("a text is cut between characters and says how much is missing", () => {
  assert.equal(boundedText("abcdef", 6), "abcdef");
  assert.equal(boundedText("abcd👩👩", 5), "abcd… (4 characters more)");
});
