import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { redact, redactDeep } from "./redact.ts";

describe("what stands behind a name", () => {
  const hidden = [
    ["password=hunter2", "password=[redacted: password]"],
    ["DB_PASS='x y z'", "DB_PASS='[redacted: password]'"],
    ['{"password": "correct horse battery staple"}', '{"password": "[redacted: password]"}'],
    ["postgres://u:p4ss@host/db", "postgres://u:[redacted: password]@host/db"],
    ["Cookie: sid=abc123def456; theme=dark", "Cookie: [redacted: cookie]"],
    ["curl -u bob:hunter2 https://x", "curl -u bob:[redacted: password] https://x"],
  ] as const;
  for (const [text, shown] of hidden) {
    it(`is hidden in ${text}`, () => assert.equal(redact(text), shown));
  }
});

describe("source code", () => {
  const innocent = ["password: string", "token = getToken()", "process.env.API_KEY", "TOKEN_COUNT=12"];
  for (const text of innocent) it(`stays as it is: ${text}`, () => assert.equal(redact(text), text));
});

it("a value's keys are names, and what holds no secret is not copied", () => {
  const env = [{ name: "API_KEY", value: "abc123def4" }];
  assert.deepEqual(redactDeep({ env, n: 1 }), { env: [{ name: "API_KEY", value: "[redacted: key]" }], n: 1 });
  const plain = { text: "nothing here", list: [1, "two"] };
  assert.equal(redactDeep(plain), plain);
});
