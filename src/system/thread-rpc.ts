/** The functions that one thread offers to the other, by name. Arguments and results are cloned. */
export type Handlers = Readonly<Record<string, (value: never) => unknown>>;

type Packet =
  | { readonly id: number; readonly name: string; readonly value: unknown }
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: string };

export class ThreadRpcError extends Error {
  override readonly name = "ThreadRpcError";
}

/** Calls and replies between two threads, in both directions over one port. */
export class ThreadRpc<Theirs extends Handlers> {
  readonly #send: (packet: unknown) => void;
  readonly #handlers: Handlers;
  readonly #open = new Map<number, PromiseWithResolvers<unknown>>();
  #count = 0;
  #closed: Error | null = null;

  constructor(send: (packet: unknown) => void, handlers: Handlers) {
    this.#send = send;
    this.#handlers = handlers;
  }

  readonly receive = (packet: unknown): void => void this.#receive(packet as Packet);

  ask<N extends keyof Theirs & string>(
    name: N,
    value: Parameters<Theirs[N]>[0],
  ): Promise<Awaited<ReturnType<Theirs[N]>>> {
    if (this.#closed !== null) return Promise.reject(this.#closed);
    const id = ++this.#count;
    const waiting = Promise.withResolvers<unknown>();
    this.#open.set(id, waiting);
    this.#send({ id, name, value });
    return waiting.promise as Promise<Awaited<ReturnType<Theirs[N]>>>;
  }

  close(text: string): void {
    const reason = new ThreadRpcError(text);
    this.#closed = reason;
    for (const waiting of this.#open.values()) waiting.reject(reason);
    this.#open.clear();
  }

  async #receive(packet: Packet): Promise<void> {
    if ("name" in packet) {
      this.#send(await this.#answer(packet));
      return;
    }
    const waiting = this.#open.get(packet.id);
    this.#open.delete(packet.id);
    if ("error" in packet) waiting?.reject(new ThreadRpcError(packet.error));
    else waiting?.resolve(packet.answer);
  }

  async #answer({ id, name, value }: { id: number; name: string; value: unknown }): Promise<Packet> {
    try {
      return { id, answer: await this.#handlers[name]?.(value as never) };
    } catch (error) {
      return { id, error: error instanceof Error ? error.message : String(error) };
    }
  }
}
