// The sim agent, but it also writes the address and token of our tools into its folder. With these, a test
// can call the tools as this session over a separate connection.
import { spawn } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { COMPILED } from "./compiled.ts";

const SIM = fileURLToPath(new URL("../../src/drivers/sim/agent.ts", import.meta.url));
const simDir = path.join(process.env["HOME"] ?? "", ".sim");

const sim = spawn(process.execPath, [SIM], {
  stdio: ["pipe", "inherit", "inherit"],
  env: {
    ...process.env,
    KINFOLD_SIM_DIR: simDir,
    KINFOLD_SIM_MODELS: "cheap-1",
    NODE_COMPILE_CACHE: COMPILED,
  },
});
sim.on("exit", (code) => process.exit(code ?? 1));
const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", (line) => {
  const { method, params } = JSON.parse(line) as { method?: string; params?: Record<string, unknown> };
  if (method === "session/new" || method === "session/load") leave(params ?? {});
  sim.stdin.write(`${line}\n`);
});
lines.on("close", () => sim.stdin.end());

function leave(params: Record<string, unknown>): void {
  const file = path.join(String(params["cwd"]), SPY_FILE);
  writeFileSync(`${file}.new`, JSON.stringify(params["mcpServers"]));
  renameSync(`${file}.new`, file);
}

const SPY_FILE = ".tools.json";
