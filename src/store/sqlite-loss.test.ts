import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import { openStore } from "./open.ts";
import type { Store } from "./port/store.ts";
import { StoreLost } from "./problem.ts";
import { StoreProcess } from "./testing/process.ts";
import { restore, type RestoreTarget } from "./restore/restore.ts";
import { aMessage, aSession } from "./testing/sample.ts";

let folder = "";
let database = "";
let target: RestoreTarget;
const opened: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kinfold-loss-"));
  database = join(folder, "kinfold.db");
  target = {
    database,
    lock: join(folder, "kinfold.lock"),
    rollouts: join(folder, "rollouts"),
    node: "local",
    log: silentLog,
  };
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

async function open(): Promise<Store> {
  const store = await openStore({
    config: { store: "sqlite", node: "local" },
    paths: { database, lock: target.lock, rollouts: target.rollouts, token: join(folder, "token") },
    boot: uuidv7(),
    log: silentLog,
  });
  opened.push(store);
  return store;
}

async function close(): Promise<void> {
  await opened.pop()?.close();
}

/**
 * Returns a store whose process was killed while writing: its newest commits are only in the write-ahead log.
 */
async function killed(): Promise<{ rootId: string; answered: number }> {
  const writer = new StoreProcess("write", "sqlite", database);
  const [, rootId = ""] = (await writer.line()).split(" ");
  let answered = 0;
  while (answered < 40) answered = Number(await writer.line()) + 1;
  await writer.kill();
  assert.ok(statSync(`${database}-wal`).size > 0);
  return { rootId, answered };
}

function flip(path: string, part: number): void {
  const bytes = readFileSync(path);
  const at = Math.floor(bytes.length * part);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

function hashes(): string[] {
  return ["", "-wal"].map((suffix) => {
    const path = `${database}${suffix}`;
    return existsSync(path) ? createHash("sha256").update(readFileSync(path)).digest("hex") : "none";
  });
}

async function refused(expected: RegExp): Promise<void> {
  const before = hashes();
  for (let i = 0; i < 2; i++) {
    await assert.rejects(open(), (error) => {
      assert.ok(error instanceof StoreLost, String(error));
      assert.match(error.message, expected);
      assert.match(error.message, /There was a store here: .*Nothing was changed.*kinfold restore/);
      return true;
    });
    assert.deepEqual(hashes(), before);
  }
}

describe("a store of which a part is gone is refused and left as it was", () => {
  it("its log, after its process was killed", async () => {
    await killed();
    rmSync(`${database}-wal`);
    await refused(/write-ahead log .* is missing/);
  });

  it("its log and the log's index", async () => {
    await killed();
    rmSync(`${database}-wal`);
    rmSync(`${database}-shm`);
    await refused(/write-ahead log .* is missing/);
  });

  for (const part of [0, 0.25, 0.75]) {
    it(`one bit of its log, ${part * 100} percent into it`, async () => {
      await killed();
      flip(`${database}-wal`, part);
      await refused(/write-ahead log .* is damaged: \d+ of its \d+ pages can be read/);
    });
  }

  it("its database, while the log is there", async () => {
    await killed();
    rmSync(database);
    await refused(/database .* is missing.*it was last opened.*write-ahead log kinfold\.db-wal is there/);
  });

  it("its database after a clean end", async () => {
    await open();
    await close();
    rmSync(database);
    await refused(/database .* is missing/);
  });

  it("its database, of which only the token and the lock are left", async () => {
    await open();
    await close();
    rmSync(database);
    rmSync(`${target.lock}.json`);
    writeFileSync(join(folder, "token"), "kfp_x\n");
    await refused(/database .* is missing.*token was made for it/);
  });

  it("its newest commits, which a rollout has and the database has not", async () => {
    const { rootId } = await killed();
    rolloutOf(rootId, [{ type: "event", seq: 1_000_000, payload: {} }]);
    await refused(/is an older state.*has event 1000000 of a tree of which the database knows \d+/);
  });
});

describe("a store that is whole is opened", () => {
  it("after its process was killed, with everything that was answered", async () => {
    const { rootId, answered } = await killed();
    rolloutOf(rootId, [{ type: "event", seq: 1, payload: {} }]);
    const store = await open();
    assert.ok((await store.read.messages.queuedCount(rootId)) >= answered);
  });

  it("after its process was killed while it was idle, also without its empty log", async () => {
    const holder = new StoreProcess("hold", "sqlite", database);
    await holder.line();
    const deadline = performance.now() + 30_000;
    while (statSync(`${database}-wal`).size > 0) {
      assert.ok(performance.now() < deadline, "the log is emptied when the store is idle");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await holder.kill();
    rmSync(`${database}-wal`);
    await open();
  });

  it("at the first start, also where the token was there before it", async () => {
    writeFileSync(join(folder, "token"), "kfp_x\n");
    await assert.doesNotReject(open());
  });
});

describe("a restore", () => {
  it("from a backup brings everything back and moves the damaged files aside", async () => {
    const store = await open();
    const root = aSession();
    await store.write(root.id, (tx) => tx.sessions.add(root));
    const file = join(folder, "backup.db");
    await store.backup(file);
    const { epoch } = store;
    await close();
    writeFileSync(database, "nothing that could be read".repeat(1_000));
    const damaged = readFileSync(database);
    const { aside } = await restore(target, { from: "backup", file });
    assert.deepEqual(readFileSync(join(aside ?? "", "kinfold.db")), damaged);
    const again = await open();
    assert.equal((await again.read.sessions.byId(root.id))?.id, root.id);
    assert.notEqual(again.epoch, epoch);
  });

  it("from a file that is no backup changes nothing", async () => {
    await open();
    await close();
    const before = hashes();
    for (const [name, text] of [
      ["text", "this is no database ".repeat(100)],
      ["empty", ""],
    ] as const) {
      const file = join(folder, name);
      writeFileSync(file, text);
      await assert.rejects(
        restore(target, { from: "backup", file }),
        /cannot be used: .*Nothing was changed/,
      );
    }
    await assert.rejects(restore(target, { from: "backup", file: folder }), /is not a file/);
    await assert.rejects(restore(target, { from: "backup", file: join(folder, "none") }), /There is no file/);
    assert.deepEqual(hashes(), before);
    assert.deepEqual(
      readdirSync(folder).filter((name) => /restor/.test(name)),
      [],
    );
  });

  it("as it is keeps what can be read of a damaged log", async () => {
    const { rootId, answered } = await killed();
    flip(`${database}-wal`, 0.999);
    await restore(target, { from: "as-is" });
    const store = await open();
    const kept = await store.read.messages.queuedCount(rootId);
    assert.ok(kept > 0 && kept >= answered - 20, `${kept} of ${answered}`);
  });

  it("from rollouts makes ended sessions that are marked as rebuilt, with their transcripts", async () => {
    const [root, child] = [aSession({ name: "root" }), aSession({ name: "child" })];
    const meta = (session: typeof root, parent: string | null) => ({
      id: session.id,
      parent_id: parent,
      root_id: root.id,
      name: session.name,
      agent: "sim",
      cwd: "/somewhere",
      scope: "a-scope",
      source: "cli",
      effective: session.effective,
    });
    const said = (index: number, text: string) => ({
      index,
      turn_id: null,
      author: "agent",
      kind: "text",
      text,
    });
    rolloutOf(root.id, [
      { type: "session_meta", seq: 1, payload: meta(root, null) },
      { type: "entry", seq: 2, payload: said(0, "first") },
      { type: "event", seq: 3, payload: { event: "turn.settled" } },
      { type: "entry", seq: 4, payload: said(1, "second") },
    ]);
    rolloutOf(child.id, [
      { type: "session_meta", seq: 5, payload: meta(child, root.id) },
      { type: "entry", seq: 6, payload: said(0, "from below") },
    ]);
    rolloutOf(uuidv7(), [{ type: "event", seq: 1, payload: {} }]);
    const restored = await restore(target, { from: "rollouts" });
    assert.deepEqual([restored.sessions, restored.entries, restored.unreadable.length], [2, 3, 1]);
    const store = await open();
    const made = await store.read.sessions.byId(child.id);
    assert.deepEqual(
      [made?.parentId, made?.rootId, made?.depth, made?.name, made?.scope, made?.endReason, made?.roundOpen],
      [root.id, root.id, 1, "child", "a-scope", "rebuilt", false],
    );
    assert.notEqual(made?.endedAt, null);
    const page = await store.read.entries.page(root.id, { after: -1, limit: 10 });
    assert.deepEqual(
      page.map((entry) => entry.body.text),
      ["first", "second"],
    );
  });

  for (const from of ["empty", "rollouts", "backup"] as const) {
    it(`from ${from} holds when its process is killed later, although older rollouts say more`, async () => {
      const root = aSession();
      const file = join(folder, "backup.db");
      const store = await open();
      await store.write(root.id, (tx) => tx.sessions.add(root));
      await store.backup(file);
      await close();
      const payload = { id: root.id, root_id: root.id, agent: "sim", cwd: "/", source: "cli" };
      rolloutOf(root.id, [
        { type: "session_meta", seq: 1, payload },
        { type: "event", seq: 1_000, payload: {} },
      ]);
      await new Promise((resolve) => setTimeout(resolve, 2));
      await restore(target, from === "backup" ? { from, file } : { from });
      const { rootId, answered } = await killed();
      const again = await open();
      assert.ok((await again.read.messages.queuedCount(rootId)) >= answered);
    });
  }

  /** Makes a readable rollout and an unreadable one, which is a folder with the name of a rollout. */
  function oneUnreadable(): string {
    const root = aSession();
    const entry = { index: 0, turn_id: null, author: "agent", kind: "text", text: "word ".repeat(50_000) };
    const payload = { id: root.id, root_id: root.id, agent: "sim", cwd: "/", source: "cli" };
    rolloutOf(root.id, [
      { type: "session_meta", seq: 1, payload },
      { type: "entry", seq: 2, payload: entry },
    ]);
    const unreadable = join(
      target.rollouts,
      "2026",
      "07",
      "01",
      `rollout-2026-07-01T00-00-00-${uuidv7()}.jsonl`,
    );
    mkdirSync(unreadable);
    return unreadable;
  }

  it("from rollouts names those that cannot be read", async () => {
    const unreadable = oneUnreadable();
    const restored = await restore(target, { from: "rollouts" });
    assert.deepEqual([restored.sessions, restored.entries, restored.unreadable], [1, 1, [unreadable]]);
  });

  const noProc = process.platform === "linux" ? false : "it looks for open files in /proc";
  it("from rollouts keeps no file open", { skip: noProc }, async () => {
    oneUnreadable();
    await restore(target, { from: "rollouts" });
    const held = readdirSync("/proc/self/fd").map((fd) => linkOf(`/proc/self/fd/${fd}`));
    assert.deepEqual(
      held.filter((file) => file.startsWith(target.rollouts)),
      [],
    );
  });

  it("of a store that is in use is refused", async () => {
    await open();
    await assert.rejects(restore(target, { from: "empty" }), /is in use/);
  });
});

it("an idle store holds nothing in its log, so that what was redacted has left the disk", async () => {
  const store = await open();
  const root = aSession();
  await store.write(root.id, (tx) => tx.sessions.add(root));
  const message = aMessage(root.id, { body: "password=canary-in-the-log" });
  await store.write(root.id, (tx) => tx.messages.add(message));
  const move = { status: "landed", landedAt: 1 } as const;
  await store.write(root.id, (tx) => tx.messages.move(message.id, ["queued"], move));
  const deadline = performance.now() + 30_000;
  while (statSync(`${database}-wal`).size > 0) {
    assert.ok(performance.now() < deadline, "the log is emptied when the store is idle");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.doesNotMatch(readFileSync(database, "latin1"), /canary-in-the-log/);
});

/** Returns an empty string for a descriptor that is closed by now, such as the one that listed the folder. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOENT");
    return "";
  }
}

function rolloutOf(
  sessionId: string,
  lines: readonly { type: string; seq: number; payload: object }[],
): void {
  const file = join(
    target.rollouts,
    "2026",
    "07",
    "01",
    `rollout-2026-07-01T00-00-${String(lines[0]?.seq).padStart(2, "0").slice(-2)}-${sessionId}.jsonl`,
  );
  mkdirSync(dirname(file), { recursive: true });
  const timestamp = new Date().toISOString();
  writeFileSync(
    file,
    lines.map(({ seq, ...rest }) => `${JSON.stringify({ timestamp, seq, ...rest })}\n`).join(""),
  );
}

it("a backup to a path that cannot be written says why", async () => {
  const store = await open();
  const file = join(folder, "file");
  writeFileSync(file, "");
  for (const [path, why] of [
    [folder, /is a folder; name a file in it/],
    [file, /exists already/],
    [join(folder, "none", "b.db"), /its folder does not exist/],
    [join(file, "b.db"), /not a folder/],
    [join(folder, "x".repeat(300)), /the name is too long/],
  ] as const) {
    await assert.rejects(store.backup(path), { code: "invalid_input", message: why });
  }
});
