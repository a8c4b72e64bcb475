import assert from "node:assert/strict";
import { test } from "node:test";
import { type Family, IDLE } from "../kernel/testing/family.ts";
import { raise } from "../kernel/trigger.ts";
import type { TriggerRecord } from "../store/port/store.ts";
import { aSession } from "../store/testing/sample.ts";
import { openEngine } from "./testing/engine.ts";
import { breakWrites } from "./testing/fake-daemon.ts";
import { Heartbeat } from "./heartbeat.ts";
import { forgetDowntime } from "./round-clock.ts";

const ASKED_MS = 600_000;

async function question(family: Family, id: string, now: number): Promise<TriggerRecord> {
  return family.change(id, (tx, session) =>
    raise(tx, session, {
      type: "ask_user_question",
      payload: { questions: [{ id: "q1", question: "which?" }] },
      default: "the first",
      fence: null,
      personOnly: false,
      parentMs: 300_000,
      defaultMs: ASKED_MS,
      openMax: 32,
      now,
    }),
  );
}

test("a sleep moves every deadline by as much, and by no more when the store refuses half-way", async (t) => {
  const real = performance.now.bind(performance);
  let aheadMs = 0;
  t.mock.method(performance, "now", () => real() + aheadMs);
  const { family, deps, runner } = await openEngine(t);
  const now = Date.now();
  const first = await question(family, (await family.add(family.rootId)).id, now);
  const other = aSession({ ...IDLE, roundOpen: true });
  await family.store.write(other.id, (tx) => tx.sessions.add(other));
  const before = await family.store.read.sessions.byId(other.id);
  assert.equal(before?.pausedMs, 0);
  await runner.run();
  const heartbeat = new Heartbeat(deps, runner);
  await heartbeat.run();
  t.after(() => heartbeat.stop());
  let writes = 0;
  const refused = Promise.withResolvers<void>();
  breakWrites(family.store, () => {
    writes += 1;
    if (writes !== 2) return null;
    refused.resolve();
    return new Error("a bug");
  });
  aheadMs = 60_000;
  await refused.promise;
  for (let notices = 0; notices < 2;) {
    const changed = Promise.withResolvers<void>();
    const off = family.store.onCommit(() => changed.resolve());
    const trees = [family.rootId, other.id].map((id) => family.store.feed.ofTree(id, 0, 1_000));
    notices = (await Promise.all(trees)).flat().filter((event) => event.type === "notice").length;
    if (notices < 2) await changed.promise;
    off();
  }
  const after = await family.store.read.triggers.byId(first.id);
  const movedMs = (after?.defaultAt ?? 0) - (first.defaultAt ?? 0);
  assert.ok(movedMs > 50_000 && movedMs < 70_000, `moved by ${movedMs}`);
  const paused = (await family.store.read.sessions.byId(other.id))?.pausedMs ?? 0;
  assert.ok(paused > 50_000 && paused < 70_000, `paused for ${paused}`);
});

test("no question's time passes while there is no daemon", async (t) => {
  const { family, deps } = await openEngine(t);
  const lastSign = Date.now() - 8 * 3_600_000;
  const { id } = await family.add(family.rootId);
  const asked = await question(family, id, lastSign);
  await family.write(async (tx) => {
    for (const session of await tx.sessions.tree(family.rootId))
      await tx.sessions.patch(session.id, { lastActivityAt: lastSign, updatedAt: lastSign });
  });
  assert.ok((asked.defaultAt ?? 0) < Date.now());
  await forgetDowntime(deps);
  const after = await family.store.read.triggers.byId(asked.id);
  assert.ok((after?.defaultAt ?? 0) >= Date.now() + ASKED_MS - 10_000);
  assert.ok((after?.personAt ?? 0) > Date.now());
});

test("open questions are found by whom they concern, and due ones by either deadline", async (t) => {
  const { family } = await openEngine(t);
  const [one, two] = [await family.add(family.rootId), await family.add(family.rootId)];
  const first = await question(family, one.id, 1);
  const second = await question(family, two.id, 2);
  const { triggers } = family.store.read;
  const ids = (found: TriggerRecord[]): string[] => found.map(({ id }) => id);
  assert.deepEqual(ids(await triggers.open({})), [first.id, second.id]);
  assert.deepEqual(ids(await triggers.open({ sessionId: two.id })), [second.id]);
  assert.deepEqual(ids(await triggers.open({ toId: family.rootId, toPerson: false })), [first.id, second.id]);
  assert.deepEqual(await triggers.open({ toPerson: true }), []);
  assert.deepEqual(await triggers.open({ sessionId: one.id, fence: 1 }), []);
  assert.deepEqual(ids(await triggers.due(second.defaultAt ?? 0)), [first.id, second.id]);
  assert.deepEqual(await triggers.due(2), []);
});

test("trees whose minutes are limited are found without reading the others", async (t) => {
  const { family } = await openEngine(t);
  await family.add(family.rootId);
  assert.deepEqual(await family.store.read.sessions.timedTrees("local"), []);
  const { effective } = await family.session();
  await family.add(family.rootId, { effective: { ...effective, limits: { minutes: 5 } } });
  assert.deepEqual(await family.store.read.sessions.timedTrees("local"), [family.rootId]);
  assert.deepEqual(await family.store.read.sessions.timedTrees("elsewhere"), []);
});
