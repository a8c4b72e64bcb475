import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Session } from "../../contract/index.ts";
import { session } from "../../contract/testing/session.ts";
import { ageOf, markedWords, stateWords, surroundings } from "./words.ts";

const ALONE = { childrenOpen: 0, ahead: 0 };

function words(change: Partial<Session>, around = ALONE, now = 1_000): string {
  const state = stateWords(session(change), around, now);
  return `${state.glyph} ${state.words}`;
}

function evidence(reason: string, at = 1_000, state = "running"): Session["evidence"] {
  return { state, reason, confidence: "certain", at };
}

describe("the words for a session that works", () => {
  it("say what it does", () => {
    assert.equal(words({ status: "running", evidence: evidence("npm test") }), "● working: npm test");
  });
  it("say how long ago that was seen, once it is more than a moment", () => {
    assert.equal(
      words({ status: "running", evidence: evidence("npm test") }, ALONE, 5_000),
      "● working: npm test, 4 s ago",
    );
  });
  it('say only "working" if nothing more is known', () => {
    assert.equal(words({ status: "running", evidence: evidence("working") }), "● working");
    assert.equal(words({ status: "running", evidence: evidence("") }), "● working");
  });
  it("say starting until the agent first reports", () => {
    assert.equal(
      words({ status: "running", evidence: evidence("accepted, not started yet", 1_000, "queued") }),
      "● working: starting",
    );
  });
  it("say quiet after ten minutes without evidence, and not before", () => {
    const busy = { status: "running", evidence: evidence("npm test", 0) } as const;
    assert.equal(words(busy, ALONE, 599_999), "● working: npm test, 9 min ago");
    assert.equal(words(busy, ALONE, 600_000), "● quiet 10 min, process alive");
  });
});

describe("the words for a session that waits", () => {
  const on = (what: NonNullable<Session["waiting"]>["on"], more: object = {}) =>
    ({ status: "waiting", waiting: { on: what, since: 0, ...more } }) as const;
  it("count its children", () => {
    assert.equal(words(on("children"), { childrenOpen: 2, ahead: 0 }), "◐ waiting for 2 children");
    assert.equal(words(on("children"), { childrenOpen: 1, ahead: 0 }), "◐ waiting for 1 child");
  });
  it("count who is ahead in the queue", () => {
    assert.equal(words(on("slot"), { childrenOpen: 0, ahead: 2 }), "◌ queued, 2 ahead");
    assert.equal(words(on("slot")), "◌ queued");
  });
  it("name the time until which it is parked", () => {
    const until = new Date(2026, 0, 1, 16, 0).getTime();
    assert.equal(
      words({ ...on("limit", { until }), agent: "claude" }),
      "◷ parked until 16:00 (Claude limit)",
    );
  });
  it("say who is asked: a root asks the person, a child its parent", () => {
    assert.equal(words(on("trigger")), "◆ needs you");
    assert.equal(
      words({ ...on("trigger"), parentId: "01900000-0000-7000-8000-00000000bbbb" }),
      "◐ waiting for parent",
    );
  });
});

describe("the words for a session at rest", () => {
  it("are those of its last outcome, with the reason", () => {
    assert.equal(words({ outcome: "completed" }), "✓ done");
    assert.equal(words({ outcome: "failed", outcomeReason: "exit 1" }), "✕ failed: exit 1");
    assert.equal(
      words({ outcome: "interrupted", outcomeReason: "daemon stopped 14:02" }),
      "↯ interrupted: daemon stopped 14:02",
    );
    assert.equal(words({}), "○ idle");
  });
  it("name who cancelled, and say you to the user", () => {
    const cancelled = { outcome: "cancelled", status: "ended" } as const;
    assert.equal(words({ ...cancelled, endedBy: "the user" }), "⊘ cancelled by you");
    assert.equal(
      words({ ...cancelled, endedBy: "its parent", outcomeReason: "wrong branch" }),
      "⊘ cancelled by its parent: wrong branch",
    );
    assert.equal(words(cancelled), "⊘ cancelled");
  });
  it("shorten the exit of an agent's process to its code", () => {
    assert.equal(
      words({ outcome: "failed", outcomeReason: "the agent process exited with code 1" }),
      "✕ failed: exit 1",
    );
  });
  it("are coloured only until a person has seen them", () => {
    assert.equal(stateWords(session({ outcome: "completed", seen: false }), ALONE, 0).colour, "green");
    assert.equal(stateWords(session({ outcome: "completed", seen: true }), ALONE, 0).colour, null);
  });
  it("cannot smuggle escape sequences or lines to the terminal", () => {
    assert.equal(
      words({ outcome: "failed", outcomeReason: "\u001b[31mred\u001b[0m\nnext\u0007" }),
      "✕ failed: red next",
    );
  });
});

describe("the words for an imported session", () => {
  it("say that its end is unknown, and show the evidence", () => {
    const left = { status: "idle", origin: "imported", outcome: null } as const;
    assert.equal(
      words({ ...left, evidence: evidence("nothing but a prompt", 0, "unknown") }),
      "? unknown: nothing but a prompt",
    );
    assert.equal(words({ ...left, evidence: evidence("", 0, "orphaned") }), "? orphaned");
  });
});

describe("facts about other sessions", () => {
  const id = (n: number) => `01900000-0000-7000-8000-00000000000${n}`;
  it("count only open children that will call back", () => {
    const parent = session({ id: id(1), status: "waiting" });
    const child = (n: number, change: Partial<Session>) =>
      session({ id: id(n), parentId: id(1), status: "running", ...change });
    const quiet = { ...parent.callback, enabled: false };
    const family = [
      parent,
      child(2, {}),
      child(3, { status: "idle" }),
      child(4, { callback: quiet }),
      child(5, { detachedAt: 1 }),
    ];
    assert.equal(surroundings(family)(parent).childrenOpen, 1);
  });
  it("count the sessions that queued earlier", () => {
    const queued = (n: number, since: number) =>
      session({ id: id(n), status: "waiting", waiting: { on: "slot", since } });
    const family = [queued(1, 5), queued(2, 9), queued(3, 7)];
    assert.deepEqual(
      family.map((one) => surroundings(family)(one).ahead),
      [0, 2, 1],
    );
  });
});

describe("marks and ages", () => {
  it("only states that a person should look at have a glyph", () => {
    assert.equal(markedWords({ glyph: "✕", words: "failed", colour: "red" }), "✕ failed");
    assert.equal(markedWords({ glyph: "●", words: "working", colour: "blue" }), "working");
  });
  it("an open session's age counts from its creation, any other's from its last activity", () => {
    assert.equal(ageOf(session({ status: "running", createdAt: 0 }), 120_000), "2 min");
    assert.equal(ageOf(session({ lastActivityAt: 60_000 }), 64_000), "4 s");
    const closed = session({ status: "ended", lastActivityAt: 60_000, endedAt: 600_000 });
    assert.equal(ageOf(closed, 660_000), "10 min", "closing a finished session does not make it young");
  });
});
