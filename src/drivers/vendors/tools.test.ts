import assert from "node:assert/strict";
import { it } from "node:test";
import { allowedTools, deniedTools } from "./tools.ts";

const TABLE = { Read: ["read"], Write: ["edit", "write"], Edit: ["edit"], Bash: ["bash"] };
const lists = (tools: string[] | null, notTools: string[] = []) => ({ tools, notTools });

it("a session without lists is held to nothing and kept from nothing", () => {
  assert.equal(allowedTools(TABLE, lists(null)), null);
  assert.deepEqual(deniedTools(TABLE, lists(null)), []);
});

it("a list of tools becomes the vendor's names, and all others are kept from the session", () => {
  assert.deepEqual(allowedTools(TABLE, lists(["Read"])), ["read"]);
  assert.deepEqual(deniedTools(TABLE, lists(["Read"])), ["edit", "write", "bash"]);
});

it("a tool that is kept from a session is not given by another name of it", () => {
  assert.deepEqual(allowedTools(TABLE, lists(["Write"], ["Edit"])), ["write"]);
  assert.deepEqual(allowedTools(TABLE, lists(null, ["Bash"])), ["read", "edit", "write"]);
});

it("a name that the table does not have is the vendor's own", () => {
  assert.deepEqual(deniedTools(TABLE, lists(null, ["special"])), ["special"]);
});
