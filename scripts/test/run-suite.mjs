// Plain JavaScript for Node 20. Runs a suite of test files and decides whether it passes.
import { chooseFiles, judge } from "./judge.mjs";
import { runFiles } from "./run-files.mjs";

/**
 * Runs test files, given as paths from `root`, and returns the exit code.
 *
 * A failure that a busy machine can cause does not make the run fail: files with a failure are run again once,
 * one after another, and the run passes if everything that failed is then seen to pass. Each such failure is
 * printed at the end as `passed only when run again: FILE: TEST`, and each lasting one as `failed: FILE: TEST`.
 */
export async function runSuite(node, setup) {
  const first = await runOnce(node, setup);
  const { passedAgain, failed } = await runAgain(node, setup, first);
  printTexts(passedAgain);
  for (const { file, test } of passedAgain) console.log(`passed only when run again: ${file}: ${test}`);
  for (const { file, test } of failed) console.log(`failed: ${file}: ${test}`);
  return failed.length === 0 ? 0 : first.code === 0 ? 1 : first.code;
}

/**
 * Runs every file once. Files that end in `.alone.test.ts` limit the processor time of their work, so they run
 * after the others, one at a time.
 */
export async function runOnce(node, setup) {
  const isAlone = (file) => file.endsWith(".alone.test.ts");
  const together = { ...setup, files: setup.files.filter((file) => !isAlone(file)) };
  const alone = { ...setup, files: setup.files.filter(isAlone), concurrency: 1 };
  let all = { code: 0, cut: null, failures: [], tally: new Map() };
  for (const phase of [together, alone]) {
    if (phase.files.length === 0 || all.cut !== null) continue;
    const { code, cut, failures, tally } = await runFiles(node, phase);
    all = {
      code: all.code === 0 ? code : all.code,
      cut,
      failures: [...all.failures, ...failures],
      tally: new Map([...all.tally, ...tally]),
    };
  }
  return all;
}

async function runAgain(node, setup, first) {
  const { files, reason } = chooseFiles(first);
  if (reason !== null) console.log(reason);
  if (files.length === 0) return { passedAgain: [], failed: first.failures };
  console.log(`\nRunning again, one after another: ${files.join(", ")}`);
  return judge(first, await runFiles(node, { ...setup, files, concurrency: 1 }));
}

function printTexts(failures) {
  for (const { file, test, text } of failures) {
    console.log(`\n${file}: ${test}\n${text.replaceAll(/^/gm, "    ")}`);
  }
  if (failures.length > 0) console.log("");
}
