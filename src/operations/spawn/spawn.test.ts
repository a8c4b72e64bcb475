import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test, type TestContext } from "node:test";
import { loadProfiles } from "../../config/profile.ts";
import { Config, Refusal } from "../../contract/index.ts";
import { createFakeDriver } from "../../drivers/fake/driver.ts";
import { type Family, openFamily } from "../../kernel/testing/family.ts";
import { silentLog } from "../../log.ts";
import { beforeNextWrite } from "../../store/testing/around-writes.ts";
import { NO_CEILING } from "../deps.ts";
import { createGate, createOperations, type OperationDeps } from "../index.ts";
import { contextOf } from "../gate.ts";

const CALL = { signal: new AbortController().signal, callId: null };

async function opened(t: TestContext) {
  const family = await openFamily(t);
  await family.store.nodes.register([await createFakeDriver({ name: "sim" }).probe()]);
  const deps: OperationDeps = {
    store: family.store,
    config: Config.parse({ permission: "workspace" }),
    log: silentLog,
    now: () => 1_000,
    reached: () => undefined,
    address: () => "http://here",
    privateFolders: [],
    rolloutPath: ({ id }) => id,
    projectCeiling: async () => NO_CEILING,
    readers: async () => [],
    userHome: { home: "/nowhere", env: {} },
    version: "0",
    profiles: () => loadProfiles({ home: tmpdir(), project: null }),
    startedAt: 0,
  };
  const { rootId } = family;
  const self = await family.store.read.sessions.byId(rootId);
  const caller = contextOf(deps, { kind: "session", id: rootId, rootId, fence: 0 }, self);
  return { family, caller, operations: createOperations(deps), gate: createGate(deps) };
}

async function refusedWith(code: string, run: Promise<unknown>): Promise<void> {
  await assert.rejects(run, (error) => error instanceof Refusal && error.code === code);
}

async function end(family: Family, id: string): Promise<void> {
  await family.write((tx) => tx.sessions.patch(id, { endedAt: 5, endReason: "cancelled" }));
}

test("a spawn whose reply was lost is answered with that child, and the next equal one is another", async (t) => {
  const { family, caller, operations, gate } = await opened(t);
  const spawn = async () => {
    const input = { id: family.rootId, prompt: "do it" };
    const { session, existing } = await operations.spawn(caller, input, CALL);
    return { id: session.id, existing };
  };
  const first = await spawn();
  await gate.spawnReplyLost(caller, first.id);
  assert.deepEqual(await spawn(), { id: first.id, existing: true });
  const next = await spawn();
  assert.equal(next.existing, false);
  assert.notEqual(next.id, first.id);
});

test("a session that was cancelled while it asked tells nobody any more", async (t) => {
  const { family, caller, operations } = await opened(t);
  const child = await family.add(family.rootId, { onParentEnd: "detach" });
  // The root ends after `tell` was accepted and before `tell` gets the tree's lock.
  beforeNextWrite(family.store, () => end(family, family.rootId));
  await refusedWith(
    "session_ended",
    operations.tell(caller, { id: child.id, message: "hi", deliverAs: "followUp", restart: false }, CALL),
  );
  assert.deepEqual(await family.inbox(child.id), []);
});

test("a process that was replaced while it asked can neither spawn nor tell", async (t) => {
  const { family, caller, operations } = await opened(t);
  const child = await family.add(family.rootId);
  await family.write((tx) => tx.sessions.patch(family.rootId, { fence: 1 }));
  await refusedWith("unauthorized", operations.spawn(caller, { id: family.rootId, prompt: "x" }, CALL));
  await refusedWith("unauthorized", operations.spawn(caller, { id: child.id, prompt: "x" }, CALL));
  await refusedWith(
    "unauthorized",
    operations.tell(caller, { id: child.id, message: "hi", deliverAs: "followUp", restart: false }, CALL),
  );
});

test("a name means the caller's own child, however many others have it", async (t) => {
  const { family, caller, operations } = await opened(t);
  const own = await family.add(family.rootId, { name: "tests", createdAt: 1 });
  const other = await family.add(family.rootId, { name: "other" });
  for (let at = 0; at < 12; at++) await family.add(other.id, { name: "tests", createdAt: 10 + at });
  const { session } = await operations.get(caller, { id: "tests" }, CALL);
  assert.equal(session.id, own.id);
});

test("a model that the agent does not have is refused with those it has, the nearest first", async (t) => {
  const { family, caller, operations } = await opened(t);
  const agent = await createFakeDriver({ name: "sim" }).probe();
  await family.store.nodes.register([{ ...agent, models: ["big-9", "fake-1", "fake-mini"] }]);
  const asked = { id: family.rootId, prompt: "x", model: "fake-mimi" };
  const refusal: unknown = await operations.spawn(caller, asked, CALL).catch((error: unknown) => error);
  assert.ok(refusal instanceof Refusal);
  assert.equal(refusal.code, "unknown_model");
  assert.deepEqual(refusal.details["known"], ["fake-mini", "fake-1", "big-9"]);
  const { session } = await operations.spawn(caller, { ...asked, model: "fake-mini" }, CALL);
  assert.equal(session.effective.model, "fake-mini");
});
