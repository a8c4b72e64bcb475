/**
 * Returns how much longer work takes here than on two idle cores, from 1 to 20. It compares the processor
 * time of a fixed amount of work with the wall clock. Time limits of tests are multiplied by this, because a
 * machine shared by many runs is slow, not broken.
 */
export function slowness(): number {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  let usedMs = 0;
  while (usedMs < PROBE_MS) {
    burn();
    const { user, system } = process.cpuUsage(cpu);
    usedMs = (user + system) / 1000;
  }
  const ratio = (performance.now() - startedAt) / usedMs;
  return Math.min(SLOWNESS_MAX, Math.max(1, ratio));
}

const PROBE_MS = 60;
const SLOWNESS_MAX = 20;

function burn(): void {
  let hash = 0;
  for (let at = 0; at < 100_000; at += 1) hash = Math.imul(hash ^ at, 16_777_619);
  // Uses the result, so that the loop is not optimised away.
  if (hash === 1) throw new Error("unreachable");
}

if (import.meta.main) console.log(slowness().toFixed(2));
