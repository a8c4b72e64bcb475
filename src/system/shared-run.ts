/**
 * Makes calls share their runs. A caller that comes while one is running gets the next one, which begins
 * after its question: forty stops then cost a few scans, and none of them misses what came before it.
 * With `restFactor`, the next run waits that many times the CPU time of the last one, so that a flood of
 * calls costs a part of the time.
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
