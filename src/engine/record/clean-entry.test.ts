import assert from "node:assert/strict";
import { test } from "node:test";
import { redactDeep } from "../../secrets/redact-deep.ts";
import type { NewEntry } from "../../store/port/store.ts";
import { cleanEntry } from "./clean-entry.ts";

const SECRET = ["ghp", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].join("_");

function result(body: NewEntry["body"]): NewEntry {
  return { turnId: "t", author: "tool", kind: "toolResult", body, isSubagent: false, at: 0 };
}

test("long texts of an entry lose the secrets that the store would take from them", async () => {
  const long = `${"a line of output\n".repeat(2_000)}${SECRET} `.repeat(4);
  const body = {
    text: long,
    command: "ls",
    input: { env: [{ name: "API_KEY", value: long }], password: long },
  };
  const { body: shown, isClean } = await cleanEntry(result(body));
  assert.equal(isClean, true);
  assert.deepEqual(shown, redactDeep(body));
  assert.equal(JSON.stringify(shown).includes(SECRET), false);
});

test("an entry without long texts is left to the store", async () => {
  const entry = result({ text: `short ${SECRET}` });
  assert.equal(await cleanEntry(entry), entry);
});

test("everyone else has a turn between two pieces of a long text", async () => {
  let turns = 0;
  const cleaning = cleanEntry(result({ text: "password: curl -u ".repeat(16_000) }));
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  await cleaning;
  clearImmediate(next);
  assert.ok(turns >= 16, `${turns} turns`);
});
