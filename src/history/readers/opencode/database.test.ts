import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { mutated } from "../../testing/mutation.ts";
import type { Problem } from "../../port.ts";
import { systemProbe } from "../../../system/process-probe.ts";
import { readAll } from "../../reader.spec.ts";
import { opencode } from "./index.ts";
import { families, layRecorded, layTree, type ReadOne, readRoot, SCHEMA, Writer } from "./testing/session.ts";
import { randomFrom } from "../../../testing/seeds.ts";

const writerFile = fileURLToPath(new URL("../../sqlite/testing/writer.ts", import.meta.url));

let folder: string;
before(async () => {
  folder = await fs.mkdtemp(join(tmpdir(), "kinfold-opencode-"));
});
after(() => fs.rm(folder, { recursive: true, force: true }));

const fresh = (): Promise<string> => fs.mkdtemp(join(folder, "root-"));

async function laid(write: (writer: Writer) => void, root?: string): Promise<string> {
  const place = root ?? (await fresh());
  const path = join(place, "opencode.db");
  const isThere = await fs.stat(path).then(
    () => true,
    () => false,
  );
  const writer = new Writer(path, isThere ? "" : SCHEMA);
  write(writer);
  writer.close();
  return place;
}

async function pictureOf(root: string): Promise<Record<string, string>> {
  const rows = (await fs.readdir(root)).toSorted().map(async (name) => {
    const { size, mtimeMs, ctimeMs, mode } = await fs.stat(join(root, name));
    const hash = createHash("sha1")
      .update(await fs.readFile(join(root, name)))
      .digest("hex");
    return [name, [hash, size, mtimeMs, ctimeMs, mode].join()];
  });
  return Object.fromEntries(await Promise.all(rows));
}

const textsOf = (one: ReadOne | undefined): string[] =>
  (one?.reading.entries ?? []).map(({ body }) => body.text);

describe("OpenCode's database while the agent is at work", () => {
  const run = async (child: ChildProcess, sql: string): Promise<void> => {
    const done = once(child, "message");
    child.send(sql);
    await done;
  };
  const insert = (id: string, text: string): string => {
    const [message, part] = [
      JSON.stringify({ role: "user", time: { created: Date.now() } }),
      JSON.stringify({ type: "text", text }),
    ];
    return `INSERT INTO message VALUES ('msg_${id}', 'ses_a', 1, 1, '${message}'); INSERT INTO part VALUES ('prt_${id}', 'msg_${id}', 'ses_a', 1, 1, '${part}');`;
  };

  it("is read as it grows, its process is known, and no file is changed, created or touched", async (test) => {
    const root = await laid((writer) => writer.session("ses_a", { time_updated: Date.now() + 60_000 }));
    const child = fork(writerFile, [join(root, "opencode.db")]);
    test.after(() => child.kill("SIGKILL"));
    await once(child, "message");
    await run(child, `PRAGMA journal_mode=WAL; ${insert("1", "one")}`);
    const look = async (earlier?: Map<string, ReadOne>): Promise<Map<string, ReadOne>> => {
      const picture = await pictureOf(root);
      const read = await readRoot(root, earlier);
      const { found } = read.get("ses_a") as ReadOne;
      await opencode.glance(found);
      await opencode.tail(found, { entriesMax: 2 });
      assert.deepEqual(await pictureOf(root), picture);
      return read;
    };
    let read = await look();
    assert.deepEqual(textsOf(read.get("ses_a")), ["one"]);
    await run(child, insert("2", "two"));
    read = await look(read);
    assert.deepEqual(textsOf(read.get("ses_a")), ["one", "two"]);
    await run(child, `PRAGMA wal_checkpoint(TRUNCATE); ${insert("3", "three")}`);
    read = await look(read);
    assert.deepEqual(textsOf(read.get("ses_a")), ["one", "two", "three"]);
    const live = await opencode.live(root, systemProbe);
    if (process.platform === "linux") {
      assert.deepEqual(
        live.map(({ id, pid, alive }) => [id, pid, alive]),
        [["ses_a", child.pid, true]],
      );
      assert.equal((await families(root, live)).get("ses_a")?.judgement?.state, "running");
    }
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    assert.deepEqual(await opencode.live(root, systemProbe), []);
    await fs.rm(join(root, "opencode.db-shm"));
    await fs.chmod(root, 0o555);
    assert.deepEqual(textsOf((await look()).get("ses_a")), ["one", "two", "three"]);
    await fs.chmod(root, 0o755);
  });

  it("parallel calls give their results in the order in which they arrive, in every later reading", async () => {
    const root = await fresh();
    const writer = new Writer(join(root, "opencode.db"));
    writer.session("ses_a").user("ses_a", "Go");
    const open = { role: "assistant", time: { created: writer.now() } };
    const id = writer.message("ses_a", open);
    const tool = (callID: string, state: object): Record<string, unknown> => ({
      type: "tool",
      tool: "bash",
      callID,
      state,
    });
    const input = { command: "ls" };
    const [a, b] = ["a", "b"].map((callID) =>
      writer.part("ses_a", id, tool(callID, { status: "running", input, time: { start: 1 } })),
    );
    const rewrite = (part: string | undefined, data: unknown): void => {
      writer.sql
        .prepare("UPDATE part SET data = ?, time_updated = ? WHERE id = ?")
        .run(JSON.stringify(data), writer.now(), part ?? "");
    };
    let read = await readRoot(root);
    const shape = (): string[] =>
      (read.get("ses_a")?.reading.entries ?? []).map(
        ({ kind, body }) => `${kind} ${body.callId ?? body.text}`,
      );
    assert.deepEqual(shape(), ["text Go", "toolCall a", "toolCall b"]);
    rewrite(b, tool("b", { status: "completed", input, output: "B", time: { start: 1, end: writer.now() } }));
    read = await readRoot(root, read);
    assert.deepEqual(shape().slice(3), ["toolResult b"]);
    const c = writer.part("ses_a", id, { type: "text", text: "Half", time: { start: writer.now() } });
    read = await readRoot(root, read);
    assert.deepEqual(shape().slice(4), [], "a text that is still being written waits");
    rewrite(c, { type: "text", text: "Half and half", time: { start: 1, end: writer.now() } });
    rewrite(a, tool("a", { status: "error", input, error: "no", time: { start: 1, end: writer.now() } }));
    writer.answer("ses_a", "Done.");
    read = await readRoot(root, read);
    assert.deepEqual(shape().slice(3), ["toolResult b", "text Half and half", "toolResult a", "text Done."]);
    writer.close();
    const whole = await readRoot(root);
    assert.deepEqual(read.get("ses_a")?.reading.entries, whole.get("ses_a")?.reading.entries);
  });
});

describe("OpenCode's database, changed between two readings", () => {
  const talk = (writer: Writer): string[] => {
    writer.session("ses_a");
    return ["One", "Two", "Three"].flatMap((text) => [
      writer.user("ses_a", text),
      writer.answer("ses_a", `${text}!`),
    ]);
  };

  it("a revert leaves the rest behind; after it is undone or made permanent, the session is read again", async () => {
    let ids: string[] = [];
    const root = await laid((writer) => {
      ids = talk(writer);
    });
    let read = await readRoot(root);
    const revert = (messageID: string | null): Promise<string> =>
      laid((writer) => {
        const value = messageID === null ? null : JSON.stringify({ messageID });
        writer.sql.prepare("UPDATE session SET revert = ?").run(value);
      }, root);
    await revert(ids[2] ?? null);
    read = await readRoot(root, read);
    const { reading } = read.get("ses_a") as ReadOne;
    const texts = new Map(reading.entries.map(({ ref, body }) => [ref, body.text]));
    assert.deepEqual(
      reading.leftBehind.map(({ afterRef }) => texts.get(afterRef ?? "")),
      ["One!"],
    );
    assert.deepEqual((await readRoot(root, read)).get("ses_a")?.reading.leftBehind.length, 1, "said once");
    await revert(null);
    const undone = (await readRoot(root, read)).get("ses_a") as ReadOne;
    assert.deepEqual([undone.reading.wasReset, undone.reading.leftBehind], [true, []]);
    await laid((writer) => {
      writer.sql.prepare("DELETE FROM message WHERE id >= ?").run(ids[2] ?? "");
      writer.user("ses_a", "Other");
    }, root);
    const gone = (await readRoot(root, read)).get("ses_a") as ReadOne;
    assert.ok(gone.reading.wasReset);
    assert.deepEqual(textsOf(gone), ["One", "One!", "Other"]);
  });

  it("a session that is no longer there is a problem, and the others are read", async () => {
    const root = await laid(talk);
    const found = (await readRoot(root)).get("ses_a")?.found;
    assert.ok(found);
    await laid((writer) => writer.sql.exec("DELETE FROM session"), root);
    assert.match((await opencode.glance(found)).problem ?? "", /no longer there/u);
    await assert.rejects(readAll(opencode, found), /no longer there/u);
    assert.deepEqual([...(await readRoot(root)).keys()], []);
  });

  it("after a vacuum its rows have other rowids and are found again", async () => {
    const root = await laid((writer) => {
      writer.session("ses_gone");
      talk(writer);
    });
    const found = (await readRoot(root)).get("ses_a")?.found;
    assert.ok(found);
    await laid((writer) => writer.sql.exec("DELETE FROM session WHERE id = 'ses_gone'; VACUUM"), root);
    assert.equal((await readAll(opencode, found)).entries.length, 6);
  });
});

describe("OpenCode's database with invalid content", () => {
  it("a row that is not JSON, or is too long, is counted once, and the rest is read", async () => {
    const root = await laid((writer) => {
      writer.session("ses_a").user("ses_a", "One");
      const id = writer.answer("ses_a", "x".repeat(5000));
      writer.part("ses_a", id, { type: "text", text: "Two" });
      for (const data of ["{", "[]", "null", "\u0000", ""]) {
        writer.put("message", {
          id: `msg_x${data.length}${data}`,
          session_id: "ses_a",
          time_created: 1,
          time_updated: 1,
          data,
        });
      }
      writer.user("ses_a", "Three");
    });
    const found = (await readRoot(root)).get("ses_a")?.found;
    assert.ok(found);
    const reading = await readAll(opencode, found, { lineBytesMax: 4000 });
    assert.deepEqual(
      reading.entries.map(({ body }) => body.text),
      ["One", "Two", "Three"],
    );
    assert.equal(reading.badCount, 6);
    assert.equal((await readAll(opencode, found, { before: reading, lineBytesMax: 4000 })).badCount, 6);
  });

  it("the parts of one message are read up to the length that one row may have", async () => {
    const parts = ["a", "b", "c"].map((sign) => ({ type: "text", text: sign.repeat(1500) }));
    const write = (writer: Writer): void => {
      writer.session("ses_a").message("ses_a", { role: "user" }, parts);
      writer.user("ses_a", "Two");
    };
    const root = await laid(write);
    const tree = await fresh();
    const writer = new Writer(join(tree, "rows.db"));
    write(writer);
    await layTree(tree, writer);
    writer.close();
    for (const place of [root, tree]) {
      const found = (await readRoot(place)).get("ses_a")?.found;
      assert.ok(found);
      const { entries, badCount } = await readAll(opencode, found, { lineBytesMax: 4000 });
      const texts = entries.map(({ body }) => body.text.replaceAll(/(.)\1+/g, "$1"));
      assert.deepEqual([texts.join("").replaceAll(/\s/g, ""), badCount], ["abTwo", 1], found.path);
    }
  });

  it("any number of unanswered prompts is read in batches", async () => {
    const root = await laid((writer) => {
      writer.sql.exec("BEGIN");
      writer.session("ses_a");
      for (let n = 0; n < 3000; n += 1) writer.user("ses_a", `Prompt ${n}`);
      writer.sql.exec("COMMIT");
    });
    const found = (await readRoot(root)).get("ses_a")?.found;
    assert.ok(found);
    const sizes: number[] = [];
    for await (const { entries } of opencode.read(found, null, { chunkBytes: 50_000 }))
      sizes.push(entries.length);
    assert.ok(Math.max(...sizes) < 1500, `a batch of ${Math.max(...sizes)}`);
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      3000,
    );
  });

  it("no content of a row makes the reader throw", async () => {
    const next = randomFrom(11);
    for (let round = 0; round < 20; round += 1) {
      const root = await fresh();
      const writer = layRecorded(join(root, "opencode.db"));
      for (const table of ["session", "message", "part"]) {
        for (const row of writer.sql.prepare(`SELECT * FROM ${table}`).all()) {
          if (next() < 0.7) continue;
          const lines = mutated(
            Buffer.from(JSON.stringify({ ...row, data: JSON.parse(String(row["data"] ?? "{}")) })),
            next,
          );
          const other = parsed(lines.toString("utf8"));
          if (other !== null) writer.put(table, { ...row, ...other });
        }
      }
      writer.close();
      await families(root);
      for (const { found } of (await readRoot(root)).values()) {
        await opencode.glance(found);
        await opencode.tail(found, { entriesMax: 2 });
      }
    }
  });

  it("a file that is damaged, or not an OpenCode database, is reported with a reason, and the others are read", async () => {
    const root = await laid((writer) => writer.session("ses_a"));
    await fs.writeFile(
      join(root, "opencode-a.db"),
      "no database at all, but long enough to look like one ".repeat(9),
    );
    new Writer(
      join(root, "opencode-b.db"),
      "CREATE TABLE session(id TEXT); CREATE TABLE message(id TEXT)",
    ).close();
    new Writer(
      join(root, "opencode-c.db"),
      SCHEMA.replace("`message_id` text NOT NULL, ", "").replaceAll(/CREATE INDEX[^;]*part[^;]*;/gu, ""),
    ).close();
    await fs.mkdir(join(root, "opencode-d.db"));
    await fs.mkdir(join(root, "storage/session/p"), { recursive: true });
    await fs.writeFile(join(root, "storage/session/p/ses_x.json"), "{");
    const problems: Problem[] = [];
    const found = await Array.fromAsync(opencode.discover(root, (problem) => problems.push(problem)));
    assert.deepEqual(
      found.map(({ id }) => id),
      ["ses_a"],
    );
    assert.deepEqual(
      problems.map(({ path, reason }) => `${path.slice(root.length + 1)}: ${reason}`),
      [
        "opencode-a.db: it is not an SQLite database",
        "opencode-b.db: its table of messages has no column session_id",
        "opencode-c.db: its table of parts has no column message_id",
        "opencode-d.db: it is not a file",
        "storage/session/p/ses_x.json: it is not a session",
      ],
    );
  });

  it("its root is the data folder, and a database that the environment names", async () => {
    assert.deepEqual(opencode.roots({ home: "/h", env: {} }), ["/h/.local/share/opencode"]);
    assert.deepEqual(opencode.roots({ home: "/h", env: { XDG_DATA_HOME: "/d", OPENCODE_DB: "mine.db" } }), [
      "/d/opencode",
      "/d/opencode/mine.db",
    ]);
    const root = await laid((writer) => writer.session("ses_a"));
    assert.deepEqual([...(await readRoot(join(root, "opencode.db"))).keys()], ["ses_a"]);
  });
});

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? onlyStorable(value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** Drops each value that is not a string or number, except `data`. A dropped column keeps its old value. */
function onlyStorable(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).filter(
      ([name, value]) => name === "data" || typeof value === "string" || typeof value === "number",
    ),
  );
}
