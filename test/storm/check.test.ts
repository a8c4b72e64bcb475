import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Record as JournalRecord } from "../../src/drivers/sim/journal.ts";
import { checkAll, type Evidence } from "./check.ts";
import { Counts, Findings } from "./findings.ts";
import type { Got } from "./journals.ts";
import { deliveriesIn } from "./journals.ts";
import { storm } from "./storm.ts";
import type { MessageRow, Tables } from "./tables.ts";

/**
 * Shows that every rule of the check after a storm can fail. Each test changes one thing in the evidence of a
 * run without faults and expects a finding.
 */
describe("the comparison after a storm", () => {
  let calm: Evidence;
  before(async () => {
    const report = await storm({
      seed: 7,
      store: "sqlite",
      kills: 0,
      eventsMin: 300,
      timeMs: 60_000,
      onEvidence: (evidence) => (calm = evidence),
    });
    assert.deepEqual(report.findings, []);
  });

  test("finds nothing where nothing is wrong", () => {
    assert.deepEqual(rulesFor(calm), []);
  });

  test("a callback that landed without its agent having it is lost", () => {
    const message = landedCallback(calm);
    assert.ok(rulesFor(withGot(calm, message, () => [])).includes("lost"));
  });

  test("a closed round without a callback is a lost callback", () => {
    const message = landedCallback(calm);
    const messages = calm.tables.messages.filter((each) => each !== message);
    assert.ok(rulesFor(withTables(calm, { messages })).includes("callback-lost"));
  });

  test("a callback that a live parent never takes is lost and stuck", () => {
    const message = landedCallback(calm);
    const rules = rulesFor(withMessage(calm, message, { status: "queued" }));
    assert.ok(rules.includes("callback-lost") && rules.includes("stuck"));
  });

  test("a second delivery is a finding without the repeat mark, and none with it", () => {
    const message = landedCallback(calm);
    const again = (isMarked: boolean): Evidence =>
      withGot(calm, message, (got) => [...got, { ...got[0]!, at: got[0]!.at + 1, isMarked }]);
    assert.ok(rulesFor(again(false)).includes("told-twice"));
    assert.deepEqual(rulesFor(again(true)), []);
  });

  test("a message with two entries is found", () => {
    const entry = calm.tables.entries.find((each) => each.body.messageId !== undefined)!;
    const entries = [...calm.tables.entries, entry];
    assert.ok(rulesFor(withTables(calm, { entries })).includes("transcript-twice"));
  });

  test("words that a complete turn lacks, or that occur more often than they were said, are found", () => {
    const isWord = (text: string | undefined): boolean => /^W-[0-9a-f]{8}$/.test(text ?? "");
    const without = calm.tables.entries.map((each) =>
      each.author === "agent" && isWord(each.body.text) ? { ...each, body: { text: "" } } : each,
    );
    assert.ok(rulesFor(withTables(calm, { entries: without })).includes("transcript-lost"));
    const files = new Map<string, readonly JournalRecord[]>(calm.journals.files);
    for (const file of files.keys())
      files.set(
        file,
        (files.get(file) ?? []).filter((each) => each.kind !== "agent"),
      );
    assert.ok(rulesFor({ ...calm, journals: { ...calm.journals, files } }).includes("transcript-twice"));
  });

  test("an event that is missing or differs from the tables is found", () => {
    const events = calm.tables.events.filter((event) => event.type !== "message.landed");
    const rules = rulesFor(withTables(calm, { events }));
    assert.ok(rules.includes("feed-gap") && rules.includes("feed-sum"));
    const feed = { ...calm.feed, events: calm.feed.events.slice(1) };
    assert.deepEqual(rulesFor({ ...calm, feed }), ["feed-lost"]);
  });

  test("a turn that runs, a round that is open and a lease at the end are found", () => {
    const [turn] = calm.tables.turns;
    const turns = calm.tables.turns.map((each) => (each === turn ? { ...each, status: "running" } : each));
    assert.ok(rulesFor(withTables(calm, { turns })).includes("stuck"));
    const lease = { sessionId: turn!.sessionId, id: "lease", pid: 1 };
    assert.ok(rulesFor(withTables(calm, { leases: [lease] })).includes("lease-left"));
  });

  test("a journal that grew after a cancel that left nothing is found", () => {
    const session = calm.tables.sessions.find((each) => each.agentSessionId !== null)!;
    const sessions = calm.tables.sessions.map((each) => (each === session ? { ...each, endedAt: 1 } : each));
    const cancelled = [{ sessionId: session.id, sizes: new Map([[session.agentSessionId!, 1]]) }];
    assert.ok(rulesFor({ ...withTables(calm, { sessions }), cancelled }).includes("after-end"));
  });

  test("a mark counts for its own message only", () => {
    const text = [
      "<!-- trigger:aaaa -->",
      "You may have seen this already.",
      "[Kinfold] Child ended.",
      "",
      "do this",
      "<!-- message:bbbb -->",
      "[Kinfold] You may have seen this already.",
      "do that",
      "",
      "<!-- message:cccc -->",
    ].join("\n");
    assert.deepEqual(deliveriesIn(text), [
      { id: "aaaa", isMarked: true },
      { id: "bbbb", isMarked: false },
      { id: "cccc", isMarked: true },
    ]);
  });
});

function rulesFor(evidence: Evidence): string[] {
  const findings = new Findings();
  checkAll({ ...evidence, findings, counts: new Counts() });
  return [...new Set(findings.all.map((finding) => finding.rule))];
}

function withTables(evidence: Evidence, tables: Partial<Tables>): Evidence {
  return { ...evidence, tables: { ...evidence.tables, ...tables } };
}

function withMessage(evidence: Evidence, message: MessageRow, patch: Partial<MessageRow>): Evidence {
  const messages = evidence.tables.messages.map((each) => (each === message ? { ...each, ...patch } : each));
  return withTables(evidence, { messages });
}

function withGot(
  evidence: Evidence,
  message: MessageRow,
  change: (got: readonly Got[]) => readonly Got[],
): Evidence {
  const got = new Map(evidence.journals.got);
  const changed = change(got.get(message.deliveryId) ?? []);
  if (changed.length > 0) got.set(message.deliveryId, changed);
  else got.delete(message.deliveryId);
  return { ...evidence, journals: { ...evidence.journals, got } };
}

/** Returns a delivered callback whose parent is still alive. */
function landedCallback({ tables }: Evidence): MessageRow {
  const live = new Set(tables.sessions.filter((each) => each.endedAt === null).map((each) => each.id));
  const isWanted = (each: MessageRow): boolean =>
    each.kind === "callback" &&
    each.status === "landed" &&
    each.carrier === "prompt" &&
    live.has(each.sessionId);
  const found = tables.messages.find(isWanted);
  assert.ok(found !== undefined, "the calm run has a callback");
  return found;
}
