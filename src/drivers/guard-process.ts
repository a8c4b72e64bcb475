import { createInterface } from "node:readline";
import { killMarked } from "./process-tree.ts";

/**
 * A process of its own that outlives the daemon by a moment. It is started with what it holds, and
 * reads `hold <lease>` and `release <lease>` lines; when its input ends, for whatever reason, it kills
 * what is still held.
 */
const held = new Set(process.argv.slice(2));

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => held.size > 0 || process.exit(0));
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const [verb, leaseId] = line.split(" ");
    if (!leaseId) return;
    if (verb === "hold") held.add(leaseId);
    if (verb === "release") held.delete(leaseId);
  })
  .on("close", () => void end());

/** Twice: the daemon may have died between making a process and that process taking its marker. */
async function end(): Promise<void> {
  await killMarked(held);
  if (held.size > 0) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    await killMarked(held);
  }
  process.exit(0);
}
