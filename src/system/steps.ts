import { setImmediate as others } from "node:timers/promises";

/** Runs a generator to its end, and lets the event loop run after each step. */
export async function takeSteps<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await others();
  }
}
