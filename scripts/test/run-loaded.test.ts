import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startPlanted } from "./testing/planted.ts";

const MODULE = new URL("./run-loaded.mjs", import.meta.url).href;

describe("tests beside busy processes", () => {
  it("run for some rounds, and a table says what failed how often", async (t) => {
    const files = {
      "a.test.ts": `describe("a room", () => {
        it("never works", () => { throw new Error("a | b\\nmore"); });
        it("works later", () => { if (isFirst()) throw new Error("chance"); });
      });`,
      "b.test.ts": `it("works", () => {});`,
    };
    const call = "loaded.runLoaded(node, setup, { rounds: 2, load: 1 })";
    const { code, out, err, runs } = await startPlanted(t, files, { call }).ended;
    assert.deepEqual({ code, err }, { code: 1, err: "" });
    assert.equal(runs.length, 4);
    const [, table] = out.split("2 rounds beside 1 busy processes:\n\n");
    assert.deepEqual(table?.trim().split("\n"), [
      "| failed | file | test | first error |",
      "| --- | --- | --- | --- |",
      "| 2 of 2 | a.test.ts | a room > never works | Error: a \\| b |",
      "| 1 of 2 | a.test.ts | a room > works later | Error: chance |",
    ]);
  });

  it("pass if nothing fails", async (t) => {
    const call = "loaded.runLoaded(node, setup, { rounds: 1, load: 0 })";
    const { code, out } = await startPlanted(t, { "a.test.ts": `it("works", () => {});` }, { call }).ended;
    assert.equal(code, 0);
    assert.match(out, /\n1 round beside 0 busy processes: nothing failed\.\n$/);
  });

  it("print what failed before an interrupt, and nothing that the interrupt broke", async (t) => {
    const files = {
      "a.test.ts": `it("fails", () => { throw new Error("broken"); });`,
      "b.test.ts": `it("waits", () => { writeFileSync("waits", ""); return new Promise(() => setInterval(() => {}, 1000)); });`,
    };
    const call = "loaded.runLoaded(node, setup, { rounds: 3, load: 1 })";
    const { root, child, ended } = startPlanted(t, files, { call, concurrency: 1 });
    while (!existsSync(join(root, "waits")) && child.exitCode === null) await pause(10);
    child.kill("SIGINT");
    const { code, out } = await ended;
    assert.equal(code, 130);
    const [, table] = out.split("\nInterrupted. 1 round beside 1 busy processes:\n\n");
    assert.deepEqual(table?.trim().split("\n").slice(2), ["| 1 of 1 | a.test.ts | fails | Error: broken |"]);
  });

  it("take their options from the words of the command", async () => {
    const { readLoadedWords, WordsError } = (await import(MODULE)) as {
      readLoadedWords: (words: string[]) => { rest: string[]; rounds: number; load: number };
      WordsError: ErrorConstructor;
    };
    assert.deepEqual(readLoadedWords(["store", "--rounds", "20", "--load=3", "--test-only"]), {
      rest: ["store", "--test-only"],
      rounds: 20,
      load: 3,
    });
    const { rest, rounds, load } = readLoadedWords([]);
    assert.deepEqual({ rest, rounds }, { rest: [], rounds: 1 });
    assert.ok(load >= 4 && load % 4 === 0);
    for (const words of [["--rounds"], ["--rounds", "0"], ["--load", "many"], ["--load=-1"]]) {
      assert.throws(() => readLoadedWords(words), WordsError, words.join(" "));
    }
  });
});

describe("busy processes", { skip: process.platform === "linux" ? false : "it reads /proc" }, () => {
  const script = `
    const { startLoad } = await import(${JSON.stringify(MODULE)});
    const load = await startLoad(2);
    console.log(JSON.stringify(load.pids));
    process.on("SIGTERM", async () => { await load.end(); process.exit(0); });
    setInterval(() => {}, 1000);
  `;

  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    it(`end with the process that started them when it gets ${signal}`, async () => {
      const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
      const [line] = (await once(child.stdout, "data")) as [Buffer];
      const pids = JSON.parse(line.toString()) as number[];
      assert.equal(pids.length, 2);
      for (const pid of pids) assert.ok(isBusy(pid), `${pid} is not busy`);
      child.kill(signal);
      await once(child, "exit");
      if (signal === "SIGTERM") assert.deepEqual(pids.filter(isBusy), []);
      while (pids.some(isBusy)) await pause(10);
    });
  }
});

function isBusy(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("busy.mjs");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}
