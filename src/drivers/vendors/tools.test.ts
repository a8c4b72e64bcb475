import assert from "node:assert/strict";
import { it } from "node:test";
import { allowedTools, deniedTools } from "./tools.ts";

const TABLE = { Read: ["read"], Write: ["edit", "write"], Edit: ["edit"], Bash: ["bash"] };
const lists = (tools: string[] | null, notTools: string[] = []) => ({ tools, notTools });

it("a session without lists of tools may use all tools", () => {
  assert.equal(allowedTools(TABLE, lists(null)), null);
  assert.deepEqual(deniedTools(TABLE, lists(null)), []);
});

it("a list of tools is translated to the vendor's names, and all other tools are denied", () => {
  assert.deepEqual(allowedTools(TABLE, lists(["Read"])), ["read"]);
  assert.deepEqual(deniedTools(TABLE, lists(["Read"])), ["edit", "write", "bash"]);
});

it("a denied tool stays denied under its other names", () => {
  assert.deepEqual(allowedTools(TABLE, lists(["Write"], ["Edit"])), ["write"]);
  assert.deepEqual(allowedTools(TABLE, lists(null, ["Bash"])), ["read", "edit", "write"]);
});

it("a name that is not in the table is passed on unchanged", () => {
  assert.deepEqual(deniedTools(TABLE, lists(null, ["special"])), ["special"]);
});
