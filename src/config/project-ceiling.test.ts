import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readProjectCeiling } from "./project-ceiling.ts";

const STRICT = "permission: read-only\nlimits:\n  depthMax: 2\n";
const LOOSE = "permission: full\nlimits:\n  depthMax: 9\n";

for (const [above, below] of [
  [STRICT, LOOSE],
  [LOOSE, STRICT],
] as const) {
  const which = above === STRICT ? "above it" : "itself";
  test(`of the files from the git top level down the strictest counts, here that of the folder ${which}`, async (t) => {
    const top = realpathSync(mkdtempSync(join(tmpdir(), "kinfold-ceiling-")));
    t.after(() => rmSync(top, { recursive: true, force: true }));
    const folder = join(top, "a", "b");
    mkdirSync(folder, { recursive: true });
    mkdirSync(join(top, ".git"));
    writeFileSync(join(top, "kinfold.yaml"), above);
    writeFileSync(join(folder, "kinfold.yaml"), below);
    const { permission, limits, where, problems } = await readProjectCeiling(folder);
    const file = join(above === STRICT ? top : folder, "kinfold.yaml");
    assert.deepEqual([permission, limits], [{ mode: "read-only", where: `${file}:1` }, { depthMax: 2 }]);
    assert.equal(where["limits.depthMax"], `${file}:3`);
    assert.deepEqual(problems, []);
  });
}
