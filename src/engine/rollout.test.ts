import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { Config } from "../contract/index.ts";
import { silentLog } from "../log.ts";
import { openStore } from "../store/open.ts";
import type { Store } from "../store/port/store.ts";
import { aSession, anEvent } from "../store/testing/sample.ts";
import type { EngineDeps } from "./deps.ts";
import { Rollout } from "./rollout.ts";

test("a line for every event, once and in order, also when more come while lines are written", async (t) => {
  const { store, lines, start } = await opened(t);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let gate = Promise.resolve();
  const { sessions } = store.read;
  const read = {
    ...store.read,
    sessions: { ...sessions, byId: (id: string) => gate.then(() => sessions.byId(id)) },
  };
  const rollout = start({ ...store, read });
  const id = await addSession(store);
  await rollout.run();
  await rollout.stop();
  const held = Promise.withResolvers<void>();
  gate = held.promise;
  await rollout.run();
  for (let at = 0; at < 50; at++) await note(store, id, at);
  t.mock.timers.tick(1_000);
  for (let at = 50; at < 100; at++) await note(store, id, at);
  t.mock.timers.tick(1_000);
  held.resolve();
  await rollout.stop();
  assert.deepEqual(
    lines(id).map((line) => line.seq),
    Array.from({ length: 101 }, (_, at) => at + 1),
  );
});

test("an entry is in the line of the event that refers to it", async (t) => {
  const { store, lines, start } = await opened(t);
  const rollout = start();
  const id = await addSession(store);
  await store.write(id, async (tx) => {
    const texts = ["one", "two", "three"];
    const added = texts.map((text) => ({
      turnId: null,
      author: "agent" as const,
      kind: "text" as const,
      body: { text },
      isSubagent: false,
      at: 1,
    }));
    for (const { index, at } of await tx.entries.append(id, added)) {
      tx.append({ sessionId: id, type: "entry.appended", text: null, data: { index }, at });
    }
  });
  await rollout.run();
  await rollout.stop();
  const written = lines(id).filter((line) => line.type === "entry");
  assert.deepEqual(
    written.map((line) => line.payload["text"]),
    ["one", "two", "three"],
  );
});

test("after a crash, missing lines are written and existing ones are not repeated", async (t) => {
  const { store, lines, file, point, start } = await opened(t);
  const rollout = start();
  const id = await addSession(store);
  for (let at = 0; at < 10; at++) await note(store, id, at);
  await rollout.run();
  await rollout.stop();
  const whole = readFileSync(file(id), "utf8");
  const kept = whole.split("\n").slice(0, 6).join("\n").length + 1;
  truncateSync(file(id), kept);
  appendFileSync(file(id), '{"timestamp":"torn');
  writeFileSync(point, "");
  const again = start();
  await again.run();
  await again.stop();
  const all = readFileSync(file(id), "utf8");
  assert.equal(all.replace('{"timestamp":"torn\n', ""), whole);
  assert.equal(lines(id).length, 11);
});

interface WrittenLine {
  readonly seq: number;
  readonly type: string;
  readonly payload: Record<string, unknown>;
}

async function opened(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), "kinfold-rollout-"));
  const store = await openStore({
    config: { store: "sqlite", node: "local" },
    paths: { database: path.join(folder, "kinfold.db") },
    boot: randomUUID(),
    log: silentLog,
  });
  t.after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const file = (id: string): string => path.join(folder, "rollouts", "day", `${id}.jsonl`);
  const deps: EngineDeps = {
    store,
    config: Config.parse({}),
    log: silentLog,
    now: Date.now,
    reached: () => undefined,
    drivers: new Map(),
    reaper: { reap: async () => ({ killed: [], left: [] }) },
    toolsUrl: () => null,
    rolloutPath: ({ id }) => file(id),
    rolloutFolder: path.join(folder, "rollouts"),
    messageFolder: path.join(folder, "messages"),
    privateFolders: [],
    usageFiles: { covers: () => false, total: async () => null, forget: () => undefined },
  };
  const lines = (id: string): WrittenLine[] =>
    readFileSync(file(id), "utf8")
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as WrittenLine);
  return {
    store,
    lines,
    file,
    point: path.join(folder, "rollouts", ".point"),
    start: (seen = store) => new Rollout({ ...deps, store: seen }),
  };
}

async function addSession(store: Store): Promise<string> {
  const session = aSession();
  await store.write(session.id, async (tx) => {
    await tx.sessions.add(session);
    tx.append(anEvent(session.id, { type: "session.created" }));
  });
  return session.id;
}

async function note(store: Store, id: string, at: number): Promise<void> {
  await store.write(id, async (tx) => tx.append(anEvent(id, { type: "notice", at })));
}
