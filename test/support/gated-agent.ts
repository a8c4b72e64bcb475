// The sim agent behind a gate: its process starts, but it says nothing until the file named by its first
// argument exists.
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const [gate = "", folder = ""] = process.argv.slice(2);
while (!existsSync(gate)) await pause(20);
process.env["KINFOLD_SIM_DIR"] = folder;
await import("../../src/drivers/sim/agent.ts");
