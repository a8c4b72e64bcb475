/**
 * Whether this thread has worked for so long from now on. Waiting for a processor is no work: on a busy machine a
 * search takes longer, and is as good.
 */
export function hasWorked(ms: number): () => boolean {
  const since = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(since);
    return user + system >= ms * 1_000;
  };
}
