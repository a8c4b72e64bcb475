// Plain JavaScript for Node 20. The words of `npm test` that choose tests by what they can reach.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const BASE = "main";

/**
 * Takes `--changed`, `--base REV` and `--of FILE` out of the words. Returns the others, and as `reach` the
 * arguments of `scripts/reach.ts`, or null if all tests are wanted.
 */
export function readReachWords(words) {
  const rest = [];
  let reach = null;
  for (let at = 0; at < words.length; at += 1) {
    const [word, value] = words[at].split(/=(.*)/s);
    if (word === "--changed") reach ??= ["--base", BASE];
    else if (word === "--base" || word === "--of") reach = [word, value ?? words[(at += 1)] ?? ""];
    else rest.push(words[at]);
  }
  return { reach, rest };
}

/** Returns the test files that the wanted change can reach. Ends the process if no such change exists. */
export function keepReached(node, { root, reach, files }) {
  if (reach === null) return files;
  const { status, stdout } = spawnSync(node, [join(root, "scripts", "reach.ts"), ...reach, ...files], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) process.exit(status ?? 1);
  return JSON.parse(stdout);
}
