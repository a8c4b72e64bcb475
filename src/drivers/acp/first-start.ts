import { statSync } from "node:fs";

/**
 * Runs the first start of a program alone and all later ones together. OpenCode creates and migrates its own
 * database when a new version starts for the first time; of several that do so at once all but one die.
 */
export class FirstStart {
  readonly #ready = new Set<string>();
  readonly #underWay = new Map<string, Promise<unknown>>();

  /** `start` must not reject. A first start that was no success leaves the next one to go alone. */
  async run<T>(program: string, start: () => Promise<T>, isSuccess: (result: T) => boolean): Promise<T> {
    const key = versionKey(program);
    for (;;) {
      if (this.#ready.has(key)) return start();
      const first = this.#underWay.get(key);
      if (first === undefined) break;
      await first;
    }
    const starting = start();
    this.#underWay.set(key, starting);
    try {
      const result = await starting;
      if (isSuccess(result)) this.#ready.add(key);
      return result;
    } finally {
      this.#underWay.delete(key);
    }
  }
}

/** An upgraded program migrates its database again, so its first start goes alone, too. */
function versionKey(program: string): string {
  return `${program} ${statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0}`;
}
