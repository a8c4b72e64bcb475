import assert from "node:assert/strict";
import { readdirSync, readlinkSync } from "node:fs";
import * as fs from "node:fs/promises";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { claudeCode } from "../history/readers/claude-code/index.ts";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { following, folder, startImporting, until } from "./testing/home.ts";

const idOf = (n: number): string => `${n.toString(16).padStart(8, "0")}-1111-4222-8333-944445555666`;
const fileOf = (n: number): string => `-w-x/${idOf(n)}.jsonl`;

async function layMany(root: string, { count, lines }: { count: number; lines: number }): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const long = new Transcript(idOf(n), { fields: { cwd: "/w/x" } }).user("Do X");
    for (let i = 0; i < lines; i += 1) long.says("lorem ipsum ".repeat(80), null);
    await lay(root, { [fileOf(n)]: long });
  }
}

describe("when much has changed at once", () => {
  it("few files are open at a time, however many sessions are let in again", async (t) => {
    const home = await startImporting(t);
    const count = 80;
    await layMany(home.claude, { count, lines: 60 });
    await home.import({ exclude: ["/w/x"] });
    let openMax = 0;
    const looking = setInterval(() => (openMax = Math.max(openMax, openBelow("/-w-x/"))), 5);
    t.after(() => clearInterval(looking));
    await home.import({ exclude: [] });
    await until(async () => (await home.client.imported({})).scan.filesRead >= count);
    assert.ok(openMax <= 20, `${openMax} files were open at once`);
    assert.equal((await home.sessions()).length, count);
  });

  it("a look in the middle of the first reading makes no news of what was there before", async (t) => {
    // On a fast machine, the reading of a few files ends too soon to look in the middle.
    for (const count of [60, 240, 960]) if (await lookedWhileReading(t, count)) return;
    assert.fail("everything was read before the look, however many files there were");
  });

  /** Looks once the reading has begun, and returns whether it was still going on. */
  async function lookedWhileReading(t: TestContext, count: number): Promise<boolean> {
    const home = await startImporting(t);
    await layMany(home.claude, { count, lines: 40 });
    const { events, ready } = following(t, home);
    await ready;
    await home.client.import({});
    const phase = await until(async () => {
      const { scan } = await home.client.imported({});
      return (scan.phase === "reading" || scan.phase === "watching") && scan.phase;
    });
    await home.import();
    await until(async () => (await home.client.imported({})).scan.filesRead >= count);
    // The feed may deliver a file's event shortly after the scan has counted the file.
    await until(async () => {
      const told = events.filter(({ type }) => type === "session.imported");
      return new Set(told.map(({ sessionId }) => sessionId)).size === count;
    });
    assert.deepEqual(
      events.filter(({ type }) => type === "entry.appended"),
      [],
    );
    return phase === "reading";
  }

  it("what was written long ago and is let in now is told as a range, and not said to be at work", async (t) => {
    const home = await startImporting(t);
    const old = new Transcript(idOf(1), { fields: { cwd: "/w/x", version: "2.1.100" } }).user("Do X");
    await lay(home.claude, { [fileOf(1)]: old.says("half", null) });
    const then = new Date("2026-08-01T10:00:10Z");
    await fs.utimes(path.join(home.claude, "projects", fileOf(1)), then, then);
    await home.import({ exclude: ["/w/x"] });
    const { events, ready } = following(t, home);
    await ready;
    await home.import({ exclude: [] });
    const told = await until(async () => events.find(({ type }) => type === "session.imported"));
    assert.deepEqual([told.data["from"], told.data["to"]], [0, 1]);
    assert.equal((await home.byAgentId(idOf(1))).evidence.state, "interrupted");
  });
});

describe("when something comes that nobody knows", () => {
  it("only the project it lies in is looked through", async (t) => {
    const root = folder(t, "kinfold-agents-");
    await lay(root, {
      "-w-a/x.jsonl": new Transcript("x").user("A"),
      "-w-b/y.jsonl": new Transcript("y").user("B"),
    });
    const near = claudeCode.near?.(root, path.join(root, "projects/-w-b/y/subagents/agent-a1.jsonl"));
    const paths = async (only?: string): Promise<string[]> => {
      const found = await Array.fromAsync(claudeCode.discover(root, () => undefined, only));
      return found.map((each) => path.relative(root, each.path)).toSorted();
    };
    assert.deepEqual(await paths(near ?? ""), ["projects/-w-b/y.jsonl"]);
    const all = claudeCode.near?.(root, path.join(root, "projects"));
    assert.deepEqual(await paths(all ?? ""), await paths());
    assert.equal(claudeCode.near?.(root, path.join(root, "history.jsonl")), null);
  });
});

/** Counts this process's open files, in all threads, whose path contains `part`. */
function openBelow(part: string): number {
  return readdirSync("/proc/self/fd").filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).includes(part);
    } catch {
      return false;
    }
  }).length;
}
