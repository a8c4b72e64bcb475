// Plain JavaScript for Node 20. The words `--changed` and `--base REV` of `npm test`.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const BASE = "main";

/** Takes both words out of the others. `base` is null if all tests are wanted. */
export function readChangedWords(words) {
  const rest = [];
  let base = null;
  for (let at = 0; at < words.length; at += 1) {
    if (words[at] === "--changed") base ??= BASE;
    else if (words[at].startsWith("--base=")) base = words[at].slice("--base=".length);
    else if (words[at] === "--base") base = words[(at += 1)] ?? "";
    else rest.push(words[at]);
  }
  return { base, rest };
}

/** Returns the test files that the changes since `base` can reach; ends the process if there is no such commit. */
export function keepReached(node, { root, base, files }) {
  if (base === null) return files;
  const { status, stdout } = spawnSync(node, [join(root, "scripts", "reach.ts"), base, ...files], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) process.exit(status ?? 1);
  return JSON.parse(stdout);
}
