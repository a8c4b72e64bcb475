import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { type Ended, type Setup, startPlanted } from "./testing/planted.ts";

/** Runs planted test files. `named` has the lines at the end that name what failed, or passed only when run again. */
async function runPlanted(
  t: TestContext,
  files: Record<string, string>,
  setup: Setup = {},
): Promise<Ended & { named: string[] }> {
  const ended = await startPlanted(t, files, { ...setup, call: "suite.runSuite(node, setup)" }).ended;
  if (setup.limits === undefined) assert.equal(ended.err, "");
  const named = ended.out.split("\n").filter((line) => /^(?:passed only when run again|failed): /.test(line));
  return { ...ended, named };
}

const PASSES = `it("works", () => {});`;
const FAILS = `it("works", () => { throw new Error("broken"); });`;
const FAILS_ONCE = `describe("a room", () => it("works", () => { if (isFirst()) throw new Error("by chance"); }));`;

describe("a run of a suite", () => {
  it("passes without a second run if nothing fails", async (t) => {
    const { code, named, runs } = await runPlanted(t, { "a.test.ts": PASSES });
    assert.deepEqual({ code, named, runs }, { code: 0, named: [], runs: ["a.test.ts"] });
  });

  it("passes and names a test that failed once and then passed", async (t) => {
    const { code, out, named, runs } = await runPlanted(t, { "a.test.ts": FAILS_ONCE, "b.test.ts": PASSES });
    assert.deepEqual(
      { code, named },
      { code: 0, named: ["passed only when run again: a.test.ts: a room > works"] },
    );
    assert.deepEqual(runs.toSorted(), ["a.test.ts", "a.test.ts", "b.test.ts"]);
    assert.match(out, /Error: by chance[^]*\npassed only when run again/);
    const [, end = ""] = out.split("Running again");
    assert.match(end, /a\.test\.ts: a room > works\n {4}Error: by chance/);
  });

  it("fails if a test fails twice, and names it in its last line", async (t) => {
    const { code, out, runs } = await runPlanted(t, { "a.test.ts": FAILS });
    assert.equal(code, 1);
    assert.equal(out.trim().split("\n").at(-1), "failed: a.test.ts: works");
    assert.deepEqual(runs, ["a.test.ts", "a.test.ts"]);
  });

  it("fails if another test of the file fails in the second run", async (t) => {
    const other = `it("other", () => { if (!isFirst()) throw new Error("later"); });`;
    const { code, named } = await runPlanted(t, { "a.test.ts": FAILS_ONCE + other });
    assert.equal(code, 1);
    assert.deepEqual(named, [
      "passed only when run again: a.test.ts: a room > works",
      "failed: a.test.ts: other",
    ]);
  });

  it("fails if the failed name is skipped in the second run", async (t) => {
    const body = `${PASSES.replace("works", "beside")} it("x", { skip: !isFirst() }, () => { throw new Error("no"); });`;
    const { code, named } = await runPlanted(t, { "a.test.ts": body });
    assert.deepEqual(
      { code, named },
      { code: 1, named: ["failed: a.test.ts: x (not seen to pass when run again)"] },
    );
  });

  it("fails if the failed name is another one in the second run", async (t) => {
    const body = `it("run " + isFirst(), () => { if (isFirst()) throw new Error("no"); });`;
    const { code, named } = await runPlanted(t, { "a.test.ts": body });
    assert.deepEqual(
      { code, named },
      { code: 1, named: ["failed: a.test.ts: run true (not seen to pass when run again)"] },
    );
  });

  it("fails if one of two tests with the failed name is missing in the second run", async (t) => {
    const body = `${PASSES} if (isFirst()) ${FAILS}`;
    const { code, named } = await runPlanted(t, { "a.test.ts": body });
    assert.deepEqual(
      { code, named },
      { code: 1, named: ["failed: a.test.ts: works (not seen to pass when run again)"] },
    );
  });

  it("fails if a shared suite fails for one of its two files, and runs that file again", async (t) => {
    const spec = `
      import { describe, it } from "node:test";
      export const suite = (fails) => describe("a store", () => it("works", () => {
        if (fails) throw new Error("no");
      }));`;
    const { code, named, runs } = await runPlanted(t, {
      "shared.spec.ts": spec,
      "one.test.ts": `import { suite } from "./shared.spec.ts"; suite(false);`,
      "two.test.ts": `import { suite } from "./shared.spec.ts"; suite(true);`,
    });
    assert.deepEqual({ code, named }, { code: 1, named: ["failed: two.test.ts: a store > works"] });
    assert.deepEqual(runs.toSorted(), ["one.test.ts", "two.test.ts", "two.test.ts"]);
  });

  it("runs nothing again if more than five files fail", async (t) => {
    const files = Object.fromEntries(
      ["a", "b", "c", "d", "e", "f"].map((name) => [`${name}.test.ts`, FAILS_ONCE]),
    );
    const { code, out, named, runs } = await runPlanted(t, files);
    assert.equal(code, 1);
    assert.equal(runs.length, 6);
    assert.match(out, /^6 files failed; at most 5 are run again\.$/m);
    assert.deepEqual(
      named.toSorted(),
      Object.keys(files).map((file) => `failed: ${file}: a room > works`),
    );
  });

  it("counts a file that crashes while it is loaded, or exits early, as failed", async (t) => {
    const { code, out, named } = await runPlanted(t, {
      "a.test.ts": `if (isFirst()) throw new Error("crash"); ${PASSES}`,
      "b.test.ts": `it("ends", () => process.exit(3));`,
    });
    assert.equal(code, 1);
    assert.deepEqual(named, [
      "passed only when run again: a.test.ts: (the whole file)",
      "failed: b.test.ts: (the whole file)",
    ]);
    assert.match(out.split("Running again")[1] ?? "", /a\.test\.ts: \(the whole file\)\n[^]*Error: crash/);
  });

  it("counts a file whose last hook fails as failed, and one that runs no test the second time too", async (t) => {
    const { code, named } = await runPlanted(t, {
      "a.test.ts": `${PASSES} after(() => { throw new Error("hook"); });`,
      "b.test.ts": `if (isFirst()) throw new Error("crash");`,
    });
    assert.equal(code, 1);
    assert.deepEqual(named, [
      "failed: a.test.ts: (the whole file)",
      "failed: b.test.ts: (the whole file) (not seen to pass when run again)",
    ]);
  });

  it("passes the runner's options to both runs", async (t) => {
    const body = `${FAILS_ONCE} it("other", () => { throw new Error("not chosen"); });`;
    const { code, named } = await runPlanted(
      t,
      { "a.test.ts": body },
      {
        options: ["--test-name-pattern=works"],
      },
    );
    assert.deepEqual(
      { code, named },
      { code: 0, named: ["passed only when run again: a.test.ts: a room > works"] },
    );
  });

  it("fails without a second run if the runner fails and no test did", async (t) => {
    const files = {
      "half.ts": `export const half = (yes) => {\n  if (yes) return 1;\n  return 2;\n};`,
      "a.test.ts": `import { half } from "./half.ts"; it("works", () => { half(true); });`,
    };
    const options = [
      "--experimental-test-coverage",
      "--test-coverage-lines=100",
      "--test-coverage-include=half.ts",
    ];
    const { code, named, runs } = await runPlanted(t, files, { options });
    assert.deepEqual(runs, ["a.test.ts"]);
    assert.equal(code, 1);
    assert.deepEqual(named, ["failed: the run: exit code 1, but no test failed"]);
  });

  it("fails without a second run if a signal ends it", async (t) => {
    const body = `it("kills", () => { process.kill(process.ppid, "SIGKILL"); return new Promise(() => setInterval(() => {}, 1000)); });`;
    const { code, named, runs } = await runPlanted(t, {
      "a.test.ts": FAILS_ONCE + body,
      "b.alone.test.ts": PASSES,
    });
    assert.equal(code, 1);
    assert.deepEqual(runs, ["a.test.ts"]);
    assert.equal(named.at(-1), "failed: the run: ended by SIGKILL");
  });

  it("fails without a second run if no test ends for too long", async (t) => {
    const body = `it("waits", () => new Promise(() => setInterval(() => {}, 1000)));`;
    const limits = { stillMs: 1_000, lookMs: 50, graceMs: 100 };
    const { code, named, runs } = await runPlanted(t, { "a.test.ts": body }, { limits, measures: true });
    assert.notEqual(code, 0);
    assert.deepEqual(runs, ["a.test.ts"]);
    const line = /^failed: the run: No test has ended for \d+ minutes\. Still running: a\.test\.ts$/;
    assert.match(named.at(-1) ?? "", line);
  });

  it("runs the files that must be alone after all others, one at a time, and again if they fail", async (t) => {
    const slow = (name: string): string => `
      it("is alone", async () => {
        appendFileSync("runs", "begin ${name}\\n");
        await new Promise((resolve) => setTimeout(resolve, 150));
        appendFileSync("runs", "end ${name}\\n");
        if (isFirst()) throw new Error("slow");
      });`;
    const { code, named, runs } = await runPlanted(t, {
      "a.alone.test.ts": slow("a"),
      "b.alone.test.ts": slow("b"),
      "c.test.ts": PASSES,
      "d.test.ts": FAILS_ONCE,
    });
    assert.equal(code, 0);
    const once = (name: string): string[] => [`${name}.alone.test.ts`, `begin ${name}`, `end ${name}`];
    assert.deepEqual(runs.slice(0, 2).toSorted(), ["c.test.ts", "d.test.ts"]);
    assert.deepEqual(runs.slice(2), [...once("a"), ...once("b"), ...runs.slice(8)]);
    assert.deepEqual(runs.slice(8).toSorted(), [...once("a"), ...once("b"), "d.test.ts"].toSorted());
    assert.equal(named.length, 3);
  });
});

describe(
  "a run whose tests leave processes behind",
  { skip: process.platform === "linux" ? false : "it reads /proc" },
  () => {
    it("fails if a file leaves one behind twice", async (t) => {
      const { code, out, named, runs } = await runPlanted(t, {
        "a.test.ts": `${PASSES} leave();`,
        "b.test.ts": PASSES,
      });
      assert.equal(code, 1);
      assert.deepEqual(named, ["failed: a.test.ts: (left processes behind)"]);
      assert.equal(runs.filter((file) => file === "a.test.ts").length, 2);
      assert.match(out, /^ {2}\d+ sleep 300 \(a\.test\.ts\)$/m);
    });

    it("passes and names a file that leaves one behind only once", async (t) => {
      const { code, named } = await runPlanted(t, { "a.test.ts": `${PASSES} if (isFirst()) leave();` });
      assert.deepEqual(
        { code, named },
        { code: 0, named: ["passed only when run again: a.test.ts: (left processes behind)"] },
      );
    });

    it("finds the file of a process that was started without the mark", async (t) => {
      const body = `${PASSES} spawn("sh", ["-c", "env -i sleep 300 & wait"], { detached: true, stdio: "ignore" }).unref();`;
      const { code, out } = await runPlanted(t, { "a.test.ts": body });
      assert.equal(code, 1);
      assert.match(out, /^ {2}\d+ sleep 300 \(a\.test\.ts\)$/m);
    });
  },
);
