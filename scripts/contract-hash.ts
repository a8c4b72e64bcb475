import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { z } from "zod";
import * as contract from "../src/contract/index.ts";

/** One number for all that crosses a boundary: operations, refusals, events, every record and the configuration. */
export function contractHash(): string {
  const operations = Object.entries(contract.OPERATIONS).map(([name, operation]) => {
    const { input, output, ...rest } = operation as contract.OperationSpec;
    return [name, { ...rest, input: z.toJSONSchema(input, { io: "input" }), output: z.toJSONSchema(output) }];
  });
  const records = Object.entries(contract).flatMap(([name, value]) =>
    value instanceof z.ZodType ? [[name, z.toJSONSchema(value, { io: "input" })]] : [],
  );
  const whole = sorted({
    operations: Object.fromEntries(operations),
    records: Object.fromEntries(records),
    refusals: contract.REFUSALS,
  });
  return createHash("sha256").update(JSON.stringify(whole)).digest("hex");
}

/** The order in which keys were written down says nothing; without this a tidied file would be a new contract. */
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
