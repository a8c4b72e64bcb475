/**
 * Makes concurrent calls share runs. A call during a run gets the next run, which sees everything that
 * happened before the call. So forty concurrent stops cost only a few scans. With `pauseFactor`, the next run
 * waits for that many times the CPU time of the last one, at most `PAUSE_MAX_MS`. This bounds the share of
 * CPU time under a flood of calls.
 */
export function sharedRun<T>(start: () => Promise<T>, pauseFactor = 0): () => Promise<T> {
  let running: Promise<void> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    next = null;
    const before = process.threadCpuUsage();
    const run = start();
    const wait = (): Promise<void> | undefined =>
      pauseFactor === 0 ? undefined : pause(before, pauseFactor);
    const over = run.then(wait, wait).then(() => {
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
  const pauseMs = Math.min(PAUSE_MAX_MS, ((user + system) / 1000) * factor);
  return new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
}

const PAUSE_MAX_MS = 250;
