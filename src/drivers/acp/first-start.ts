import { statSync } from "node:fs";

/**
 * Runs a program's first start alone and later starts in parallel. OpenCode creates or migrates its database
 * at the first start of a version; if several processes do so at once, all but one die.
 */
export class FirstStart {
  readonly #ready = new Set<string>();
  readonly #underWay = new Map<string, Promise<unknown>>();

  /** `start` must not reject. If a first start fails, the next start also runs alone. */
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

/** Includes the modification time, because an upgraded program migrates its database again. */
function versionKey(program: string): string {
  return `${program} ${statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0}`;
}
