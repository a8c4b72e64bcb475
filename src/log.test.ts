import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { openLog } from "./log.ts";

test("one line of JSON for each thing said, in order, there when the call returns", (t) => {
  const { file, lines } = logFile(t);
  const log = openLog({ level: "info", path: file });
  log.info({ port: 1 }, "first");
  log.warn({ text: "two\nlines" }, "second");
  assert.deepEqual(
    lines().map(({ time: _time, ...rest }) => rest),
    [
      { level: 30, port: 1, msg: "first" },
      { level: 40, text: "two\nlines", msg: "second" },
    ],
  );
  assert.ok(lines().every((line) => !Number.isNaN(Date.parse(String(line["time"])))));
});

test("what is below the level is not written", (t) => {
  const { file, lines } = logFile(t);
  const log = openLog({ level: "warn", path: file });
  log.debug({}, "no");
  log.info({}, "no");
  log.error({}, "yes");
  assert.deepEqual(
    lines().map((line) => line["msg"]),
    ["yes"],
  );
});

test("an error is told with its kind, words, stack, code and cause", (t) => {
  const { file, lines } = logFile(t);
  const cause = new RangeError("the reason");
  const error = Object.assign(new TypeError("it broke", { cause }), { code: "E_BROKE" });
  openLog({ level: "info", path: file }).error({ err: error }, "a turn broke");
  const told = lines()[0]?.["err"] as Record<string, unknown>;
  assert.equal(told["type"], "TypeError");
  assert.equal(told["message"], "it broke");
  assert.equal(told["code"], "E_BROKE");
  assert.match(String(told["stack"]), /log\.test\.ts/);
  assert.equal((told["cause"] as Record<string, unknown>)["message"], "the reason");
});

test("what cannot be written as JSON never throws and keeps its words", (t) => {
  const { file, lines } = logFile(t);
  const log = openLog({ level: "info", path: file });
  const loop: Record<string, unknown> = {};
  loop["self"] = loop;
  log.info({ loop }, "round and round");
  log.info({ big: 10n }, "large");
  assert.equal(lines()[0]?.["msg"], "round and round");
  assert.equal(lines()[1]?.["big"], "10");
});

test(
  "a log that cannot be written ends nothing",
  { skip: existsSync("/dev/full") ? false : "this system has no /dev/full" },
  () => {
    const log = openLog({ level: "info", path: "/dev/full" });
    assert.doesNotThrow(() => log.error({}, "nobody reads this"));
  },
);

test(
  "the file is its owner's alone",
  { skip: process.platform === "win32" ? "Windows has no file modes" : false },
  (t) => {
    const { file } = logFile(t);
    openLog({ level: "info", path: file }).info({}, "secret");
    assert.equal(statSync(file).mode & 0o777, 0o600);
  },
);

function logFile(t: TestContext): { file: string; lines: () => Record<string, unknown>[] } {
  const folder = mkdtempSync(path.join(tmpdir(), "kinfold-log-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "logs", "daemon.log");
  const lines = (): Record<string, unknown>[] =>
    readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { file, lines };
}
