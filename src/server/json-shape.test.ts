import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { isWithinShape, JSON_DEPTH_MAX, JSON_ITEMS_MAX, JsonShape } from "./body.ts";
import { checkProperty } from "../testing/seeds.ts";

const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const keys = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n])));

test("JSON at a limit is within it, and one level or item more is not", () => {
  assert.ok(isWithinShape(nested(JSON_DEPTH_MAX)));
  assert.ok(!isWithinShape(nested(JSON_DEPTH_MAX + 1)));
  assert.ok(isWithinShape(keys(JSON_ITEMS_MAX)));
  assert.ok(!isWithinShape(keys(JSON_ITEMS_MAX + 1)));
});

test("signs within a string, also behind escapes, are neither levels nor items", () => {
  assert.ok(isWithinShape(JSON.stringify({ text: `${"[{,".repeat(20_000)}\\"${'",['.repeat(20_000)}` })));
});

test("it makes no difference where the bytes are cut", () => {
  checkProperty(
    import.meta.filename,
    fc.property(fc.json({ maxDepth: 8 }), fc.integer({ min: 1, max: 9 }), (text, length) => {
      const deep = `${"[".repeat(JSON_DEPTH_MAX - 2)}${text}`;
      const bytes = Buffer.from(deep);
      const pieces = new JsonShape();
      for (let at = 0; at < bytes.length; at += length) pieces.add(bytes.subarray(at, at + length));
      assert.equal(pieces.problem === null, isWithinShape(deep));
    }),
  );
});
