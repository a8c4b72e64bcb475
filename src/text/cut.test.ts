import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { byteLength } from "./quantity.ts";
import { boundedText, firstBytes, firstChars, shortLine } from "./fence.ts";

test("the beginning of any text is the longest that fits", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (text, max) => {
      for (const [first, size] of [
        [firstBytes(text, max), byteLength],
        [firstChars(text, max), (part: string) => part.length],
      ] as const) {
        assert.ok(text.startsWith(first) && size(first) <= max);
        const next = Array.from(text)[Array.from(first).length];
        assert.ok(next === undefined || size(first + next) > max);
      }
    }),
  );
});

test("no cut separates the two halves of a character", () => {
  const text = "a👩\n 👩b👩👩";
  for (let max = 1; max <= text.length; max++) {
    for (const part of [firstChars(text, max), shortLine(text, max), boundedText(text, max)])
      assert.ok(part.isWellFormed(), part);
    assert.ok(shortLine(text, max).length <= max);
  }
});
