import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { randomFrom } from "../../testing/seeds.ts";
import { limitedUntil, type LimitSeen, limitSeen } from "./limit.ts";

const at = (text: string): number => new Date(text).getTime();
/** In the machine's time zone, because agents write local times. */
const NOW = at("2026-11-16T10:20:30");
const HOUR = 3_600_000;
const error = (message: string, data?: unknown): Error => Object.assign(new Error(message), { data });
const codex = "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro)";

describe("a vendor's usage limit", () => {
  const table: [string, unknown, number | null][] = [
    ["sim's own field", error("limit", { resetsAt: NOW + 5 }), NOW + 5],
    ["a time in seconds", error("x", { resets_at: (NOW + HOUR) / 1000 }), NOW + HOUR],
    ["a number of seconds", error("x", { resets_in_seconds: 90 }), NOW + 90_000],
    ["Claude's old words", error(`Claude AI usage limit reached|${(NOW + HOUR) / 1000}`), NOW + HOUR],
    ["Claude's session limit", "You've hit your session limit · resets 3:45pm", at("2026-11-16T15:45")],
    ["another apostrophe", "You’ve hit your weekly limit · resets 3pm", at("2026-11-16T15:00")],
    [
      "Claude's, with its zone",
      error("Internal error: You've hit your Opus limit · resets 3am (Asia/Tokyo)"),
      at("2026-11-16T18:00Z") > NOW ? at("2026-11-16T18:00Z") : at("2026-11-17T18:00Z"),
    ],
    [
      "Claude's, days away",
      "You've hit your weekly limit · resets Nov 19, 3:45pm (UTC)",
      at("2026-11-19T15:45Z"),
    ],
    [
      "Claude's, in another year",
      "You've hit your weekly limit · resets Nov 19, 2026, 3pm (UTC)",
      at("2026-11-19T15:00Z"),
    ],
    [
      "Claude's monthly spend limit with its day",
      "You've hit your monthly spend limit · resets Dec 1",
      at("2026-12-01T00:00"),
    ],
    [
      "a limit that will reset",
      "Claude usage limit reached. Your limit will reset at 3pm.",
      at("2026-11-16T15:00"),
    ],
    ["Codex's time", `${codex}, or try again at 3:42 PM.`, at("2026-11-16T15:42")],
    ["Codex's day", `${codex} or try again at Nov 17th, 2026 3:42 PM.`, at("2026-11-17T15:42")],
    [
      "Codex's, as its adapter sends it",
      error("Internal error", {
        message: `${codex} or try again at 9:05 AM.`,
        codexErrorInfo: "usageLimitExceeded",
      }),
      at("2026-11-17T09:05"),
    ],
    ["Codex's duration", `${codex} or try again in 1 day 2 hours 5 minutes.`, NOW + 26 * HOUR + 5 * 60_000],
    [
      "Gemini's",
      "You have exhausted your capacity on this model. Your quota will reset after 2h3m4s.",
      NOW + 2 * HOUR + 184_000,
    ],
    [
      "OpenCode's",
      "5-hour usage limit reached. It will reset in 2 hours 3 minutes. To continue",
      NOW + 2 * HOUR + 180_000,
    ],
    ["midnight", "You've hit your session limit · resets 12am", at("2026-11-17T00:00")],
    ["noon", "You've hit your session limit · resets 12pm", at("2026-11-16T12:00")],
    ["the running minute", "You've hit your session limit · resets 10:20am", NOW + 60_000],
    ["a time that is past", error(`usage limit reached|${NOW / 1000 - 3600}`), NOW + 60_000],
    ["a limit without its end", "You've hit your usage limit. Try again later.", NOW + HOUR],
    ["Gemini's without its end", "You have exhausted your daily quota on this model.", NOW + HOUR],
    ["a limit with an end that cannot be", error("x", { resetsAt: 9e15 }), NOW + HOUR],
    ["a limit with no number as its end", error("x", { resetsAt: Number.NaN }), NOW + HOUR],
    ["money that is used up", "You've hit your monthly spend limit.", null],
    ["another error that says when to try again", "overloaded, try again in 5 minutes", null],
    ["a busy server", "Server is temporarily limiting requests (not your usage limit) · Rate limited", null],
    ["a full context", "Context limit reached · /compact", null],
    ["no error at all", null, null],
  ];
  for (const [what, thrown, until] of table) {
    it(`${what}: ${until === null ? "is no limit" : "says when it ends"}`, () => {
      assert.equal(limitedUntil(thrown, NOW), until);
    });
  }

  it("that Claude's adapter reports with the tokens ends at the reported second", () => {
    const resetsAt = NOW / 1000 + 7_333;
    const rejected = limitSeen({ "_claude/rateLimit": { status: "rejected", resetsAt } });
    const words = "You've hit your session limit · resets 12:22pm";
    assert.equal(limitedUntil(words, NOW, rejected), resetsAt * 1000);
    const warned = limitSeen({ "_claude/rateLimit": { status: "allowed_warning", resetsAt } });
    assert.equal(limitedUntil(words, NOW, warned), at("2026-11-16T12:22"), "of another limit, perhaps");
    assert.equal(limitedUntil("You've hit your session limit", NOW, warned), resetsAt * 1000);
    assert.equal(limitedUntil(error("overloaded"), NOW, rejected), null);
    assert.equal(limitedUntil(error("x", { errorKind: "rate_limit" }), NOW, rejected), resetsAt * 1000);
    assert.equal(limitSeen({ usage: {} }), null);
  });

  it("ends never in the past and never beyond a month, and no text makes it throw", () => {
    const random = randomFrom(7);
    for (let round = 0; round < 3_000; round += 1) {
      const now = 1_700_000_000_000 + Math.floor(random() * 3e11);
      const count = 1 + Math.floor(random() * 9);
      const text = Array.from({ length: count }, () => PIECES[Math.floor(random() * PIECES.length)]).join(
        random() < 0.7 ? " " : "",
      );
      const seen: LimitSeen | null =
        random() < 0.3
          ? { isReached: random() < 0.5, resetsAt: random() < 0.5 ? null : (random() - 0.3) * 4e12 }
          : null;
      const until = limitedUntil(random() < 0.5 ? text : error(text, { errorKind: "rate_limit" }), now, seen);
      if (until === null) continue;
      assert.ok(
        Number.isSafeInteger(until) && until >= now && until <= now + 32 * 86_400_000,
        `${text}: ${until - now}`,
      );
    }
  });
});

const PIECES = [
  "You've hit your usage limit",
  "session limit reached",
  "quota will reset after",
  "· resets",
  "try again at",
  "try again in",
  "will reset at",
  "|1794780000",
  "|9999999999999",
  "3:42 PM",
  "99:99 pm",
  "0am",
  "13pm",
  "24:00",
  "12:61",
  "Nov 17th, 2026",
  "Feb 31,",
  "Dec 99 9999",
  "Nov 17, 3pm (Europe/Berlin)",
  "(Nowhere/Land)",
  "(UTC)",
  "2h3m4s",
  "999999 days",
  "1.5 hours",
  "0 seconds",
  "and",
  ",",
  "\u202f",
  "’",
  "💥",
  "()[]{}|\\^$",
  "",
];
