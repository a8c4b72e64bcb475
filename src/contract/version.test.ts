import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { contractHash } from "../../scripts/contract-hash.ts";
import { CONTRACT_VERSION } from "./version.ts";

it("a contract that has changed has a new version", () => {
  const committed: unknown = JSON.parse(readFileSync(new URL("version.hash.json", import.meta.url), "utf8"));
  assert.deepEqual(
    committed,
    { version: CONTRACT_VERSION, hash: contractHash() },
    "The contract is not the one its version stands for: raise CONTRACT_VERSION in src/contract/version.ts " +
      "(major when something a caller relied on is gone, else minor), then run `node scripts/contract-hash.ts`.",
  );
});
