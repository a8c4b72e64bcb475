import { setImmediate as others } from "node:timers/promises";

/** Runs all steps and lets the event loop run between them. */
export async function takeSteps<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await others();
  }
}
