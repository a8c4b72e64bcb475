// Plain JavaScript for Node 20. Runs tests on a busy machine, again and again, to find those that fail by chance.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { NO_FILE } from "./run-files.mjs";
import { runOnce } from "./run-suite.mjs";

const BUSY = fileURLToPath(new URL("busy.mjs", import.meta.url));
/** Busy processes for each processor. */
const LOAD_PER_CORE = 4;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Takes `--rounds N` and `--load N` out of the words of a command. */
export function readLoadedWords(words) {
  const rest = [...words];
  const rounds = takeNumber(rest, "--rounds", { min: 1, missing: 1 });
  const load = takeNumber(rest, "--load", { min: 0, missing: LOAD_PER_CORE * availableParallelism() });
  return { rest, rounds, load };
}

/**
 * Runs test files for some rounds beside busy processes, without second runs of failures. Prints how often each
 * test failed, even if it is interrupted, and returns the exit code.
 */
export async function runLoaded(node, setup, { rounds, load }) {
  let interrupted = false;
  const interrupt = () => (interrupted = true);
  for (const name of SIGNALS) process.on(name, interrupt);
  const busy = await startLoad(load);
  const table = new FailureTable();
  try {
    for (let round = 1; round <= rounds && !interrupted; round += 1) {
      console.log(`\nround ${round} of ${rounds}, beside ${load} busy processes`);
      const { failures, cut } = await runOnce(node, setup);
      table.addRound(interrupted ? failures.filter(({ file }) => file !== NO_FILE) : failures);
      // What ended this round, for example a deadlock or a lack of memory, would end the next one too.
      if (cut !== null) break;
    }
  } finally {
    await busy.end();
    for (const name of SIGNALS) process.off(name, interrupt);
  }
  console.log(`\n${interrupted ? "Interrupted. " : ""}${table.print(load)}`);
  return interrupted ? 130 : table.isEmpty() ? 0 : 1;
}

/** Starts busy processes and waits until all of them work. */
export async function startLoad(count) {
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, [BUSY], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  await Promise.all(children.map(untilBusy));
  return {
    pids: children.map(({ pid }) => pid),
    async end() {
      const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
      const ended = running.map((child) => once(child, "exit"));
      for (const child of running) child.kill("SIGKILL");
      await Promise.all(ended);
    },
  };
}

async function untilBusy(child) {
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`a busy process ended with ${code ?? signal} before it began`);
  });
  await Promise.race([once(child.stdout, "data"), ended]);
}

class FailureTable {
  #rounds = 0;
  #rows = new Map();

  addRound(failures) {
    this.#rounds += 1;
    const unique = new Map(failures.map((failure) => [`${failure.file}\n${failure.test}`, failure]));
    for (const [key, failure] of unique) {
      const row = this.#rows.get(key) ?? { ...failure, times: 0 };
      this.#rows.set(key, { ...row, times: row.times + 1 });
    }
  }

  isEmpty() {
    return this.#rows.size === 0;
  }

  /** Returns a Markdown table, the most frequent failures first. */
  print(load) {
    const title = `${this.#rounds} ${this.#rounds === 1 ? "round" : "rounds"} beside ${load} busy processes`;
    if (this.isEmpty()) return `${title}: nothing failed.`;
    const rows = [...this.#rows.values()]
      .toSorted((a, b) => b.times - a.times)
      .map(({ file, test, text, times }) => [`${times} of ${this.#rounds}`, file, test, errorLine(text)]);
    const lines = [["failed", "file", "test", "first error"], ["---", "---", "---", "---"], ...rows];
    const cells = (line) => `| ${line.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    return [`${title}:`, "", ...lines.map(cells)].join("\n");
  }
}

/** Returns the first line that names an error, else the first line. */
function errorLine(text) {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  return (lines.find((line) => /Error\b/.test(line)) ?? lines[0] ?? "").slice(0, 200);
}

function takeNumber(words, option, { min, missing }) {
  const at = words.findIndex((word) => word === option || word.startsWith(`${option}=`));
  if (at < 0) return missing;
  const [word, next] = words.splice(at, words[at] === option ? 2 : 1);
  const value = word === option ? next : word.slice(option.length + 1);
  if (!/^\d{1,6}$/.test(value ?? "") || Number(value) < min) {
    throw new WordsError(`${option} takes a whole number of at least ${min}, for example ${option} 8.`);
  }
  return Number(value);
}

/** A word of the command line that cannot be used; its message says what is allowed. */
export class WordsError extends Error {}
