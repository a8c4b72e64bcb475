/**
 * Makes calls share their runs. A caller that comes while one is running gets the next one, which begins
 * after its question: forty stops then cost a few scans, and none of them misses what came before it.
 */
export function sharedRun<T>(start: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    next = null;
    const run = start();
    const done = (): void => {
      if (running === run) running = null;
    };
    running = run;
    run.then(done, done);
    return run;
  };
  return () => {
    if (running === null) return begin();
    next ??= running.then(begin, begin);
    return next;
  };
}
