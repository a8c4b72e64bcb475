import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const WALK = join(dirname(fileURLToPath(import.meta.url)), "walk.ts");

test("one spawn runs through no more files and changes of folder than its limits", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [WALK, "--json"]);
  const { counts, limits } = JSON.parse(stdout) as Record<"counts" | "limits", Record<string, number>>;
  assert.deepEqual(Object.keys(limits), ["files", "changes"]);
  for (const [name, limit] of Object.entries(limits)) {
    const count = counts[name] ?? Infinity;
    assert.ok(count <= limit, `${count} ${name}, at most ${limit}; node scripts/walk.ts --list names them`);
  }
  // A walk that recorded nothing would pass the limits too.
  assert.ok(counts["files"]! > 50 && counts["statements"]! > 50 && counts["commits"]! > 2);
});
