// Plain JavaScript for Node 20. Runs test files once and returns their results.
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { environment, root as project, runToEnd } from "../run-node.mjs";
import { TestRun } from "../test-run.mjs";

const REPORTER = new URL("reporter.mjs", import.meta.url).href;
const MARK_FILE = new URL("mark-file.mjs", import.meta.url).href;

/** Names of failures that belong to a file and to none of its tests. */
export const WHOLE_FILE = "(the whole file)";
export const LEFT_BEHIND = "(left processes behind)";
/** Stands for the file in failures that no file can be blamed for. */
export const NO_FILE = "the run";

/**
 * Runs test files, given as paths from `root`, in one `node --test`. Kills the processes that they leave
 * behind; each counts as a failure of its file. Time limits grow with the measured slowness of the machine.
 *
 * Returns the exit code, `cut` (why the run was ended early, or null), the failures, and the tally: how often
 * each test of each file ran and passed.
 */
export async function runFiles(node, { root, files, options, concurrency, testMs, limits, slowness }) {
  const startedAt = performance.now();
  const base = realpathSync(root);
  const tests = new TestRun(slowness ?? (() => measureSlowness(node)), limits);
  const args = [
    "--test",
    `--import=${MARK_FILE}`,
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${Math.round(testMs * tests.slowness())}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${REPORTER}`,
    `--test-reporter-destination=${tests.resultsFile}`,
    ...options,
    ...files,
  ];
  const { code, cut } = await runToEnd(node, args, { tests, cwd: base });
  const results = readResults(tests.resultsFile).map((result) => nameResult(result, base, files));
  const left = await tests.clean();
  console.log(`${files.length} test files in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  printLeft(left);
  // Nothing can end by itself in a run that was cut short.
  const failures = [...failuresOf(results), ...(cut === null ? leftBehind(left) : [])];
  if (cut !== null) failures.push({ file: NO_FILE, test: cut, text: "" });
  else if (code !== 0 && failures.length === 0) {
    failures.push({ file: NO_FILE, test: `exit code ${code}, but no test failed`, text: "" });
  }
  return { code, cut, failures, tally: tallyOf(results) };
}

function measureSlowness(node) {
  const script = join(project, "scripts", "slowness.ts");
  return Number(execFileSync(node, [script], { env: environment(node), encoding: "utf8" }));
}

/** Reads the lines of the reporter. The last one may be incomplete if the run was killed. */
function readResults(path) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return [];
  }
  const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

function nameResult({ file, path, ...rest }, base, files) {
  const name = relative(base, resolve(base, file));
  return {
    ...rest,
    file: files.includes(name) ? name : NO_FILE,
    test: path.length === 0 ? WHOLE_FILE : path.map(onOneLine).join(" > "),
  };
}

function onOneLine(name) {
  return name.replaceAll(/\s+/g, " ").trim();
}

/** Leaves out the suites that failed only because one of their tests did. */
function failuresOf(results) {
  const failed = results.filter(({ passed }) => !passed);
  const named = new Set(failed.filter(({ follows }) => !follows).map(({ file }) => file));
  return failed
    .filter(({ file, follows }) => !follows || !named.has(file))
    .map(({ file, test, text }) => ({ file, test, text }));
}

function printLeft(left) {
  if (left.length === 0) return;
  console.log("The run left processes behind; they were killed:");
  for (const { file, pid, command } of left) console.log(`  ${pid} ${command} (${file ?? "file unknown"})`);
}

function leftBehind(left) {
  const byFile = new Map();
  for (const { file, pid, command } of left) {
    byFile.set(file ?? NO_FILE, [...(byFile.get(file ?? NO_FILE) ?? []), `${pid} ${command}`]);
  }
  return [...byFile].map(([file, lines]) => ({ file, test: LEFT_BEHIND, text: lines.join("\n") }));
}

function tallyOf(results) {
  const tally = new Map();
  for (const { file, test, kind, passed } of results) {
    const of = tally.get(file) ?? { passed: 0, tests: new Map() };
    const count = of.tests.get(test) ?? { ran: 0, passed: 0 };
    of.tests.set(test, { ran: count.ran + 1, passed: count.passed + Number(passed) });
    tally.set(file, { ...of, passed: of.passed + Number(passed && kind === "test") });
  }
  return tally;
}
