#!/usr/bin/env node
// Plain JavaScript for any Node: it must be able to say that this Node is too old.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_MAJOR_MIN = 24;
const main = new URL("../src/cli/main.ts", import.meta.url);
// Types are stripped and code is compiled once, not at every start. The folder is the person's own:
// whoever could write there could run code as them.
const compiled = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "kinfold", "compiled");
const ownNode = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));

if (Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN) {
  const { enableCompileCache } = await import("node:module");
  enableCompileCache(compiled);
  await import(main.href);
} else if (existsSync(ownNode)) {
  process.exitCode = await runUnder(ownNode);
} else {
  process.stderr.write(
    `kinfold needs Node ${NODE_MAJOR_MIN} or newer; this is ${process.version}.\n` +
      "  In a clone of the repository: npm start   (fetches a Node of its own, changes nothing else)\n" +
      "  Else install a newer Node: https://nodejs.org, or your version manager (nvm install 24, fnm install 24)\n",
  );
  process.exitCode = 1;
}

function runUnder(node) {
  return new Promise((resolve, reject) => {
    const args = [fileURLToPath(main), ...process.argv.slice(2)];
    const child = spawn(node, args, {
      stdio: "inherit",
      env: { NODE_COMPILE_CACHE: compiled, ...process.env },
    });
    // A terminal sends its interrupt to the whole group: handed on, it would arrive twice.
    process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
    process.on("SIGTERM", () => child.kill("SIGTERM"));
    process.on("SIGHUP", () => child.kill("SIGHUP"));
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 1)));
  });
}
