/**
 * Returns a function that says whether this thread has used `ms` of CPU time since now. Waiting for a CPU
 * does not count: on a busy machine a search takes longer but may finish. CPU time never exceeds elapsed
 * time, and the clock is cheaper to read, so it is read first.
 */
export function hasWorked(ms: number): () => boolean {
  const from = performance.now();
  const since = process.threadCpuUsage();
  return () => {
    if (performance.now() - from < ms) return false;
    const { user, system } = process.threadCpuUsage(since);
    return user + system >= ms * 1_000;
  };
}
