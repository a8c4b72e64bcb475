import assert from "node:assert/strict";
import { test } from "node:test";
import { objectOrReason } from "./parse-json.ts";

const MANY = 600_000;

test("a text with more values than fit into memory is refused", () => {
  const texts = [
    `[${"[],".repeat(MANY)}0]`,
    `[${"{},".repeat(MANY)}0]`,
    `[${"0,".repeat(MANY)}0]`,
    `${"[".repeat(MANY)}${"]".repeat(MANY)}`,
    `{${'"\\"":0,'.repeat(MANY)}"a":0}`,
  ];
  for (const text of texts)
    assert.equal(objectOrReason(text), "longer than 500000 values", text.slice(0, 12));
});

test("brackets and commas inside a string are not counted", () => {
  const text = '[{\\",'.repeat(MANY);
  assert.deepEqual(objectOrReason(JSON.stringify({ text })), { text });
});
