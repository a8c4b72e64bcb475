/**
 * Returns a function that says whether this thread has used `ms` of CPU time since this call. Waiting for a
 * CPU does not count, so on a busy machine a search takes longer but is not stopped. The function reads the
 * elapsed time first: that is cheaper, and CPU time never exceeds elapsed time.
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
