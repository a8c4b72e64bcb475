import type { Fragment } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Commit } from "./port.ts";

/** Who wants to hear of commits and of live text. A listener that throws harms nobody else. */
export class Listeners {
  readonly #log: Log;
  readonly #commit = new Set<(commit: Commit) => void>();
  readonly #fragment = new Set<(fragment: Fragment) => void>();

  constructor(log: Log) {
    this.#log = log;
  }

  onCommit(listener: (commit: Commit) => void): () => void {
    this.#commit.add(listener);
    return () => this.#commit.delete(listener);
  }

  onFragment(listener: (fragment: Fragment) => void): () => void {
    this.#fragment.add(listener);
    return () => this.#fragment.delete(listener);
  }

  committed(commit: Commit): void {
    for (const listener of this.#commit) this.#call(listener, commit);
  }

  published(fragment: Fragment): void {
    for (const listener of this.#fragment) this.#call(listener, fragment);
  }

  #call<T>(listener: (value: T) => void, value: T): void {
    try {
      listener(value);
    } catch (error) {
      this.#log.error({ error: String(error) }, "a listener of the store failed");
    }
  }
}
