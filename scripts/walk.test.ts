import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const WALK = join(dirname(fileURLToPath(import.meta.url)), "walk.ts");

test("a walk follows one spawn through the files, folders, statements and commits it needs", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [WALK, "--json"]);
  const counts = JSON.parse(stdout) as Record<string, number>;
  assert.deepEqual(Object.keys(counts), ["files", "changes", "statements", "commits"]);
  // Lower bounds only: an upper bound would punish dividing a file.
  assert.ok(counts["files"]! > 50 && counts["changes"]! > 20, stdout);
  assert.ok(counts["statements"]! > 50 && counts["commits"]! > 2, stdout);
});
