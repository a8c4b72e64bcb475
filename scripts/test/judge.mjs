// Plain JavaScript for Node 20. Decides what the failures of a run mean. Pure functions.
import { LEFT_BEHIND, NO_FILE, WHOLE_FILE } from "./run-files.mjs";

const FILES_MAX = 5;

/**
 * Decides which files of a failed run are run again. Returns no file, and the reason, if the failures cannot
 * be chance: too many files, or none that could be named.
 */
export function chooseFiles({ failures }) {
  const files = [...new Set(failures.map(({ file }) => file))];
  if (files.includes(NO_FILE)) return { files: [], reason: null };
  if (files.length <= FILES_MAX) return { files, reason: null };
  return { files: [], reason: `${files.length} files failed; at most ${FILES_MAX} are run again.` };
}

/**
 * Compares a run with the second run of its failed files. A failure passed again if its name was seen to pass
 * in the second run as often as it had run in the first. Everything else failed: what did not run or was
 * skipped, and whatever failed in the second run.
 */
export function judge(first, second) {
  const failed = [...second.failures];
  const passedAgain = [];
  for (const failure of first.failures) {
    if (second.failures.some((again) => isSame(again, failure))) continue;
    if (hasPassed(failure, first, second)) passedAgain.push(failure);
    else failed.push({ ...failure, test: `${failure.test} (not seen to pass when run again)` });
  }
  return { passedAgain, failed };
}

function hasPassed({ file, test }, first, second) {
  const of = second.tally.get(file);
  if (of === undefined || of.passed === 0) return false;
  // These are no tests. They passed if the file ran and did not fail in the same way again.
  if (test === WHOLE_FILE || test === LEFT_BEHIND) return true;
  return (of.tests.get(test)?.passed ?? 0) >= first.tally.get(file).tests.get(test).ran;
}

function isSame(one, other) {
  return one.file === other.file && one.test === other.test;
}
