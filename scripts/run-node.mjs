// Plain JavaScript for Node 20. Runs scripts with the project's Node as child processes that end with us.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, dirname, join, relative, resolve as absolute } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const bin = join(root, "node_modules", ".bin");

/** Grace period after a run of tests was asked to end, before it is killed. */
const END_MS = 10_000;

/** Runs a script with the given Node and returns its exit code. Its child processes use the same Node. */
export async function runNode(node, args, { cwd = root } = {}) {
  return (await runToEnd(node, args, { cwd })).code;
}

/**
 * Runs a script, forwards signals to it, and watches the progress of `tests` if it runs some. Returns the exit
 * code, and as `cut` why the script was ended before it was done, or null.
 */
export function runToEnd(node, args, { tests, cwd = root }) {
  return new Promise((resolve, reject) => {
    const env = { ...environment(node), ...tests?.env };
    const child = spawn(node, args, { cwd, stdio: "inherit", env });
    let [cut, forced] = [null, undefined];
    const end = (signal) => {
      child.kill(signal);
      if (tests !== undefined) forced ??= setTimeout(() => child.kill("SIGKILL"), END_MS);
    };
    const forward = (signal) => {
      cut ??= `ended by ${signal}`;
      // A terminal sends the interrupt to the whole process group; forwarding it would deliver it twice.
      if (signal !== "SIGINT" || !process.stdin.isTTY) end(signal);
    };
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
    for (const signal of signals) process.on(signal, forward);
    const watch = whenStarterGoes(() => {
      if (cut !== null) return;
      cut = "ended because its starter is gone";
      end("SIGTERM");
    });
    const unwatch = tests?.watch((why) => {
      const running = stillRunning(child.pid);
      // The last word of the command is the test file.
      cut ??= [
        why,
        ...running.map((words) => `Still running: ${relative(cwd, absolute(cwd, words.at(-1)))}`),
      ].join(" ");
      console.error(`${why} Ending the run.`);
      for (const words of running) console.error(`  still running: ${words.join(" ")}`);
      end("SIGTERM");
    });
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      unwatch?.();
      clearTimeout(forced);
      clearInterval(watch);
      for (const name of signals) process.off(name, forward);
      if (signal !== null) cut ??= `ended by ${signal}`;
      resolve({ code: code ?? (signal === "SIGINT" ? 130 : signal === "SIGTERM" ? 143 : 1), cut });
    });
  });
}

/**
 * Puts this Node first in the PATH of child processes and gives them a compile cache, which halves their
 * start time.
 */
export function environment(node) {
  const NODE_COMPILE_CACHE = join(root, "node_modules", ".cache", "kinfold");
  return { NODE_COMPILE_CACHE, ...process.env, PATH: [dirname(node), bin, process.env.PATH].join(delimiter) };
}

/**
 * Calls `act` when our parent process is gone. npm starts us through a shell, and a signal that ends the
 * shell is not forwarded to us.
 */
function whenStarterGoes(act) {
  if (process.env.npm_lifecycle_event === undefined) return undefined;
  const starter = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === starter) return;
    clearInterval(watch);
    act();
  }, 250);
  return watch;
}

/** Returns the commands of our child's children. */
function stillRunning(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
    return children.map((id) => readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0").filter(Boolean));
  } catch {
    return [];
  }
}
