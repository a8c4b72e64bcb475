import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { limitedUntil } from "./failure.ts";

const NOW = 1_794_700_000_000;
const error = (message: string, data?: unknown): Error => Object.assign(new Error(message), { data });

describe("a vendor's usage limit", () => {
  const table: [string, unknown, number | null][] = [
    ["sim's own field", error("limit", { resetsAt: NOW + 5 }), NOW + 5],
    ["a time in seconds", error("x", { resets_at: 1_794_780_000 }), 1_794_780_000_000],
    ["a number of seconds", error("x", { resets_in_seconds: 90 }), NOW + 90_000],
    ["Claude's words", error("Claude AI usage limit reached|1794780000"), 1_794_780_000_000],
    [
      "Codex's words",
      "You've hit your usage limit. Upgrade, or try again in 1 day 2 hours 5 minutes.",
      NOW + 86_400_000 + 2 * 3_600_000 + 300_000,
    ],
    ["a limit without its end", "You've hit your usage limit.", null],
    ["another error that says when to try again", "overloaded, try again in 5 minutes", null],
    ["no error at all", null, null],
  ];
  for (const [what, thrown, until] of table) {
    it(`${what}: ${until === null ? "says no end" : "says when it is over"}`, () => {
      assert.equal(limitedUntil(thrown, NOW), until);
    });
  }
});
