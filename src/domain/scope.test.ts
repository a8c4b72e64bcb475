import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { sees, visibleFrom } from "./permission.ts";

const shared = { visibility: "shared" } as const;
const isolated = { visibility: "isolated" } as const;

it("an isolated scope sees only itself, named in the configuration or not", () => {
  assert.deepEqual(visibleFrom("lab", { lab: isolated, team: shared }), ["lab"]);
  assert.deepEqual(visibleFrom("unknown", { team: shared }), ["unknown"]);
});

it("a shared scope sees all shared ones", () => {
  assert.deepEqual(visibleFrom("team", { team: shared, lab: isolated, docs: shared }), ["team", "docs"]);
});

it("whatever the configuration, seeing is mutual, and everyone sees itself", () => {
  const names = fc.constantFrom("a", "b", "c", "d");
  fc.assert(
    fc.property(fc.dictionary(names, fc.constantFrom(shared, isolated)), names, names, (scopes, one, two) => {
      assert.equal(sees(visibleFrom(one, scopes), two), sees(visibleFrom(two, scopes), one));
      assert.ok(sees(visibleFrom(one, scopes), one));
    }),
  );
});
