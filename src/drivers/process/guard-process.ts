import { createInterface } from "node:readline";
import { killMarked } from "../../system/process-tree.ts";
import type { RememberedProcess } from "../../system/process.ts";

/**
 * A separate process that outlives the daemon for a moment. Its arguments are the leases to guard. It reads
 * lines: `add <lease>`, `remember <lease> <processes>`, `release <lease>`. When its input ends, it kills the
 * processes of the leases that it still guards.
 */
const guarded = new Map<string, readonly RememberedProcess[]>(process.argv.slice(2).map((id) => [id, []]));

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => guarded.size > 0 || process.exit(0));
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const [verb, leaseId] = line.split(" ", 2);
    if (!leaseId) return;
    if (verb === "add") guarded.set(leaseId, []);
    if (verb === "release") guarded.delete(leaseId);
    if (verb === "remember" && guarded.has(leaseId)) {
      guarded.set(leaseId, JSON.parse(line.slice(`${verb} ${leaseId} `.length)) as RememberedProcess[]);
    }
  })
  .on("close", () => void end());

/** Kills twice, because the daemon may have died just after creating a process that had no marker yet. */
async function end(): Promise<void> {
  const leaseIds = new Set(guarded.keys());
  const remembered = [...guarded.values()].flat();
  await killMarked(leaseIds, remembered);
  if (leaseIds.size > 0) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    await killMarked(leaseIds, remembered);
  }
  process.exit(0);
}
