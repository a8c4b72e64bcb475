/**
 * Makes concurrent calls share runs. A call during a run gets the next run, which begins after the call:
 * forty stops cost a few scans, and none misses what happened before it. With `restFactor`, the next run
 * waits that many times the CPU time of the last one, at most `REST_MAX_MS`. This bounds the share of CPU
 * time under a flood of calls.
 */
export function sharedRun<T>(start: () => Promise<T>, restFactor = 0): () => Promise<T> {
  let running: Promise<void> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    next = null;
    const before = process.threadCpuUsage();
    const run = start();
    const rest = (): Promise<void> | undefined => (restFactor === 0 ? undefined : pause(before, restFactor));
    const over = run.then(rest, rest).then(() => {
      if (running === over) running = null;
    });
    running = over;
    return run;
  };
  return () => {
    if (running === null) return begin();
    next ??= running.then(begin);
    return next;
  };
}

function pause(before: NodeJS.CpuUsage, factor: number): Promise<void> {
  const { user, system } = process.threadCpuUsage(before);
  const restMs = Math.min(REST_MAX_MS, ((user + system) / 1000) * factor);
  return new Promise((resolve) => setTimeout(resolve, restMs).unref());
}

const REST_MAX_MS = 250;
