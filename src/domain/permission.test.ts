import assert from "node:assert/strict";
import { test } from "node:test";
import { Permission } from "../contract/index.ts";
import { atMost, isLooser } from "./permission.ts";

const ORDER = ["read-only", "ask", "workspace", "full"] as const;

test("every mode of the contract has its place", () => {
  assert.deepEqual(Permission.options.toSorted(), [...ORDER].toSorted());
});

test("a mode is looser than those before it and than no other", () => {
  for (const [at, mode] of ORDER.entries()) {
    for (const [than, other] of ORDER.entries()) assert.equal(isLooser(mode, other), at > than);
  }
});

test("what a child may have is its parent's mode or a stricter one", () => {
  assert.deepEqual(atMost("read-only"), ["read-only"]);
  assert.deepEqual(atMost("workspace"), ["read-only", "ask", "workspace"]);
  for (const mode of ORDER) assert.ok(atMost(mode).every((each) => !isLooser(each, mode)));
});
