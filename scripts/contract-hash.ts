import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { z } from "zod";
import * as contract from "../src/contract/index.ts";

/** The input of the hash: the operation table, the refusal table, and every exported schema by name. */
export interface ContractSource extends Readonly<Record<string, unknown>> {
  readonly OPERATIONS: Readonly<Record<string, contract.OperationSpec>>;
  readonly REFUSALS: Readonly<Record<string, readonly [status: number, sentence: string]>>;
}

/**
 * Returns one hash over everything that crosses a boundary: operations, refusals, events, every record and
 * the configuration. Rewording prose (summaries, descriptions, texts of refusals) does not change the hash.
 * Changing a field of the operation table that only the daemon uses does not either.
 */
export function contractHash(source: ContractSource = contract): string {
  const records = Object.entries(source).flatMap(([name, value]) =>
    value instanceof z.ZodType ? [[name, shapeOf(value, "input")]] : [],
  );
  const whole = sorted({
    operations: mapped(source.OPERATIONS, wireOf),
    records: Object.fromEntries(records),
    refusals: mapped(source.REFUSALS, ([status]) => status),
  });
  return createHash("sha256").update(JSON.stringify(whole)).digest("hex");
}

/**
 * The fields of an operation that a caller can see. A new field becomes part of the hash only when it is
 * added here.
 */
function wireOf({ input, output, refusals, http, mcp, cli, sessions }: contract.OperationSpec): unknown {
  const schemas = { input: shapeOf(input, "input"), output: shapeOf(output, "output") };
  return { ...schemas, refusals: refusals.toSorted(), http, mcp, cli, sessions };
}

/** Returns the JSON schema. The empty metadata registry leaves out the descriptions. */
function shapeOf(schema: z.ZodType, io: "input" | "output"): unknown {
  return z.toJSONSchema(schema, { io, metadata: z.registry<Record<string, never>>() });
}

function mapped<T>(table: Readonly<Record<string, T>>, shape: (row: T) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, shape(row)]));
}

/** Sorts the keys, so that moving a field within its file does not change the contract. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

if (import.meta.main) {
  const path = new URL("../src/contract/version.hash.json", import.meta.url);
  const line = { version: contract.CONTRACT_VERSION, hash: contractHash() };
  writeFileSync(path, `${JSON.stringify(line, null, 2)}\n`);
  console.log(`contract ${line.version} is now ${line.hash.slice(0, 12)}`);
}
