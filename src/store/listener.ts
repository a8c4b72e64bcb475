import type { Fragment } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Commit } from "./port/store.ts";

/**
 * Listeners for commits, live text, import requests and probe requests. An error in one does not affect the
 * others.
 */
export class Listeners {
  readonly #log: Log;
  readonly #commit = new Set<(commit: Commit) => void>();
  readonly #ask = new Set<() => void>();
  readonly #probe = new Set<() => Promise<void>>();
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

  onAsk(listener: () => void): () => void {
    this.#ask.add(listener);
    return () => this.#ask.delete(listener);
  }

  onProbe(listener: () => Promise<void>): () => void {
    this.#probe.add(listener);
    return () => this.#probe.delete(listener);
  }

  committed(commit: Commit): void {
    for (const listener of this.#commit) this.#call(listener, commit);
  }

  published(fragment: Fragment): void {
    for (const listener of this.#fragment) this.#call(listener, fragment);
  }

  asked(): void {
    for (const listener of this.#ask) this.#call(listener, undefined);
  }

  async probed(): Promise<void> {
    const looks = await Promise.allSettled([...this.#probe].map((listener) => listener()));
    for (const look of looks) {
      if (look.status === "rejected")
        this.#log.error({ error: String(look.reason) }, "probing the agents failed");
    }
  }

  #call<T>(listener: (value: T) => void, value: T): void {
    try {
      listener(value);
    } catch (error) {
      this.#log.error({ error: String(error) }, "a store listener threw an error");
    }
  }
}
