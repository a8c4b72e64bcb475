import { setImmediate as others } from "node:timers/promises";

/** Does all steps. Everyone else has a turn between two of them. */
export async function takeSteps<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await others();
  }
}
