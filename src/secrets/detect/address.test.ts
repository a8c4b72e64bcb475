import assert from "node:assert/strict";
import { it } from "node:test";
import { redact } from "../redact.ts";

it("a password in an address goes also where its at sign was written for another session", () => {
  const word = ["hunter", "2hunter"].join("");
  for (const at of ["@", "\\@", "\\\\@"]) {
    for (const password of [word, `a/${word}`, `a#${word}`, `a?${word}`]) {
      assert.equal(
        redact(`postgres://app:${password}${at}db.example.com/app`),
        `postgres://app:[redacted: password]${at}db.example.com/app`,
      );
    }
  }
});
