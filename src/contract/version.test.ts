import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { z } from "zod";
import { type ContractSource, contractHash } from "../../scripts/contract-hash.ts";
import type { OperationSpec } from "./operations/table.ts";
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

const row = {
  summary: "Reads a thing.",
  input: z.object({ id: z.string().describe("Which thing.") }),
  output: z.object({ description: z.string() }),
  refusals: ["not_found"],
  http: { method: "GET", path: "/things/:id" },
  sessions: false,
} satisfies OperationSpec;

const small: ContractSource = {
  OPERATIONS: { read: row },
  REFUSALS: { not_found: [404, "No such thing."] },
  Thing: z.object({ size: z.number().describe("How large it is.") }).describe("A thing."),
};

const withRow = (change: Partial<OperationSpec> & Record<string, unknown>): ContractSource => ({
  ...small,
  OPERATIONS: { read: { ...row, ...change } },
});

const SAME: Record<string, ContractSource> = {
  "a reworded summary": withRow({ summary: "Gives back one thing." }),
  "a reworded description": withRow({ input: z.object({ id: z.string().describe("The id.") }) }),
  "a removed description": { ...small, Thing: z.object({ size: z.number() }) },
  "a reworded refusal": { ...small, REFUSALS: { not_found: [404, "There is none."] } },
  "a fact that only the daemon uses": withRow({
    blocks: true,
    right: "read",
    leaf: true,
    aliases: { sessionId: "id" },
  }),
};

const OTHER: Record<string, ContractSource> = {
  "a type that changed": { ...small, Thing: z.object({ size: z.string() }) },
  "a new field": withRow({ input: row.input.extend({ deep: z.boolean() }) }),
  "a removed field that is called description": withRow({ output: z.object({}) }),
  "a field that became optional": withRow({ input: row.input.partial() }),
  "another address": withRow({ http: { method: "GET", path: "/thing/:id" } }),
  "a new tool": withRow({ mcp: "read_thing" }),
  "another set of refusals": withRow({ refusals: ["not_found", "forbidden"] }),
  "another status of a refusal": { ...small, REFUSALS: { not_found: [410, "No such thing."] } },
};

for (const [name, source] of Object.entries(SAME)) {
  it(`${name} leaves the hash of the contract as it is`, () => {
    assert.equal(contractHash(source), contractHash(small));
  });
}

for (const [name, source] of Object.entries(OTHER)) {
  it(`${name} changes the hash of the contract`, () => {
    assert.notEqual(contractHash(source), contractHash(small));
  });
}
