import assert from "node:assert/strict";
import { test } from "node:test";
import { redactDeep } from "../../secrets/redact-deep.ts";
import type { NewEntry } from "../../store/port/store.ts";
import { cleanEntries } from "./update-entry.ts";

const SECRET = ["ghp", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].join("_");
const HINTS = "password: curl -u ";

function result(body: NewEntry["body"]): NewEntry {
  return { turnId: "t", author: "tool", kind: "toolResult", body, isSubagent: false, at: 0 };
}

test("entries lose the secrets that the store would take from them", async () => {
  const long = `${"a line of output\n".repeat(2_000)}${SECRET} `.repeat(4);
  const bodies = [
    { text: `short ${SECRET}` },
    {
      text: long,
      command: "ls",
      input: { env: [{ name: "API_KEY", value: long }], password: long, Authorization: long },
    },
    { text: "", input: { [long]: 1 } },
  ];
  const shown = await cleanEntries(bodies.map(result));
  assert.deepEqual(
    shown.map(({ body }) => body),
    bodies.map((body) => redactDeep(body)),
  );
  assert.ok(shown.every(({ isClean }) => isClean === true));
  assert.equal(JSON.stringify(shown).includes(SECRET), false);
});

test("an entry that is clean already stays as it is", async () => {
  const clean = { ...result({ text: `kept ${SECRET}` }), isClean: true };
  const [first, second] = await cleanEntries([clean, result({ text: "plain" })]);
  assert.equal(first, clean);
  assert.deepEqual(second, { ...result({ text: "plain" }), isClean: true });
});

for (const [what, bodies] of Object.entries({
  "one long text": [{ text: HINTS.repeat(16_000) }],
  "many texts": Array.from({ length: 64 }, (_, n) => ({ text: `${n} ${HINTS.repeat(250)}` })),
})) {
  test(`everyone else has a turn between two pieces of ${what}`, async () => {
    const chars = JSON.stringify(bodies).length;
    let turns = 0;
    const cleaning = cleanEntries(bodies.map(result));
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    await cleaning;
    clearImmediate(next);
    assert.ok(turns >= chars / (20 * 1024), `${turns} turns for ${chars} characters`);
  });
}
