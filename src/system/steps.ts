import { setImmediate as others } from "node:timers/promises";

/** Lets the event loop run between the steps. */
export async function takeSteps<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await others();
  }
}
