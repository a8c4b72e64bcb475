import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionRecord } from "../store/port/store.ts";
import { openFamily } from "./testing/family.ts";
import { raise } from "./trigger.ts";

const PARENTS: readonly [string, Partial<SessionRecord>, boolean][] = [
  ["that works or is idle alone is asked", {}, false],
  ["that has failed is asked alone: a question wakes it", { held: "failed" }, false],
  ["that was stopped cannot be woken, so the person is asked at once as well", { held: "stopped" }, true],
  ["that is attached cannot be woken, so the person is asked at once as well", { origin: "attached" }, true],
  ["that has ended is not asked, but the person is", { endedAt: 1, endReason: "cancelled" }, true],
];

for (const [rule, fields, toPerson] of PARENTS) {
  test(`of a child's question: a parent ${rule}`, async (t) => {
    const family = await openFamily(t);
    const parent = await family.add(family.rootId, fields);
    const child = await family.add(parent.id, {});
    const trigger = await family.store.write(family.rootId, async (tx) => {
      const session = (await tx.sessions.byId(child.id))!;
      return raise(tx, session, {
        type: "ask_user_question",
        payload: { questions: [{ id: "q1", question: "Which one?" }] },
        default: null,
        fence: null,
        personOnly: false,
        parentMs: 300_000,
        defaultMs: 600_000,
        openMax: 10,
        now: Date.now(),
      });
    });
    assert.equal(trigger.toPerson, toPerson);
    assert.equal(trigger.toId, fields.endedAt === undefined ? parent.id : null);
  });
}
