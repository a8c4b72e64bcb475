import assert from "node:assert/strict";
import { it } from "node:test";
import { countLines } from "./line-count.ts";

it("lines are counted as a diff counts them", () => {
  assert.deepEqual(countLines("", "a\nb\n"), { added: 2, removed: 0 });
  assert.deepEqual(countLines("a\nb\n", ""), { added: 0, removed: 2 });
  assert.deepEqual(countLines("a\nb\nc\n", "a\nx\nc\n"), { added: 1, removed: 1 });
  assert.deepEqual(countLines("a\nb\nc\nd\n", "a\nc\nd\ne\n"), { added: 1, removed: 1 });
  assert.deepEqual(countLines("same", "same"), { added: 0, removed: 0 });
});

it("a large file that was rewritten counts as rewritten, although some of its lines are the same", () => {
  const file = (prefix: string): string =>
    Array.from({ length: 5_000 }, (_, at) => (at % 2 === 0 ? `${prefix}${at}` : `same ${at}`)).join("\n");
  // Every second line is the same in both files. But comparing all pairs of lines would take too long, so
  // only the common last line counts as unchanged.
  assert.deepEqual(countLines(file("a"), file("b")), { added: 4_999, removed: 4_999 });
});
