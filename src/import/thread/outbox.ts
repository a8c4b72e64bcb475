import type { ThreadRpc } from "../../system/thread-rpc.ts";
import type { EntryBatch, MemberChange, StoreSide } from "./protocol.ts";

/** The maximum number of pending writes of one family; beyond it the reader waits. */
const AHEAD_MAX = 12;

/**
 * Sends one family's writes to the store, in order, while reading continues. After a failed write, no later
 * write is stored; `settle` reports the failure.
 */
export class Outbox {
  readonly #rpc: ThreadRpc<StoreSide>;
  readonly #ahead = new Set<Promise<void>>();
  readonly #rootIds = new Set<string>();
  #failure: Error | null = null;

  constructor(rpc: ThreadRpc<StoreSide>) {
    this.#rpc = rpc;
  }

  append(batch: EntryBatch): Promise<void> {
    this.#rootIds.add(batch.rootId);
    return this.#send(this.#rpc.ask("append", batch));
  }

  change(changes: readonly MemberChange[]): Promise<void> {
    for (const { rootId } of changes) this.#rootIds.add(rootId);
    return this.#send(this.#rpc.ask("change", changes));
  }

  /** Waits for all writes. If one failed, lets the store accept writes to these trees again, then rejects. */
  async settle(): Promise<void> {
    await Promise.all(this.#ahead);
    const failure = this.#failure;
    if (failure === null) return;
    this.#failure = null;
    await this.#rpc.ask("resume", [...this.#rootIds]);
    throw failure;
  }

  /** Resolves when there is room for another write. */
  async #send(asked: Promise<void>): Promise<void> {
    const sent: Promise<void> = asked
      .catch((error: unknown) => void (this.#failure ??= error as Error))
      .finally(() => this.#ahead.delete(sent));
    this.#ahead.add(sent);
    if (this.#ahead.size >= AHEAD_MAX) await Promise.race(this.#ahead);
    if (this.#failure !== null) throw this.#failure;
  }
}
