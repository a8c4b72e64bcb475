/**
 * Whether this thread has worked for so long from now on. Waiting for a processor is no work: on a busy machine a
 * search takes longer, and is as good. Nobody works for longer than the clock says, and the clock is cheaper to ask.
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
