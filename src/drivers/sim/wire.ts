import { LineReader } from "../../text/line-reader.ts";

export class WireError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export type Handler = (params: Params) => unknown;
export type Params = Readonly<Record<string, unknown>>;

interface Incoming {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Params;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** The agent's side of JSON-RPC, one message per line. Uses no library, so that sim starts quickly. */
export class Wire {
  readonly #handlers: Readonly<Record<string, Handler>>;
  readonly #pending = new Map<number | string, (message: Incoming) => void>();
  #lastId = 0;

  constructor(handlers: Readonly<Record<string, Handler>>) {
    this.#handlers = handlers;
  }

  listen(input: NodeJS.ReadableStream): void {
    const lines = new LineReader();
    input.on("data", (chunk: Buffer) => {
      for (const line of lines.push(chunk)) this.#receive(line);
    });
  }

  notify(method: string, params: object): void {
    send({ method, params });
  }

  request(method: string, params: object): Promise<unknown> {
    this.#lastId += 1;
    const id = `sim-${this.#lastId}`;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, (message) => {
        if (message.error) reject(new Error(message.error.message));
        else resolve(message.result);
      });
      send({ id, method, params });
    });
  }

  #receive(line: string): void {
    const message = JSON.parse(line) as Incoming;
    if (message.method !== undefined) {
      void this.#answer(message.method, message);
      return;
    }
    const id = message.id ?? "";
    this.#pending.get(id)?.(message);
    this.#pending.delete(id);
  }

  async #answer(method: string, { id, params }: Incoming): Promise<void> {
    try {
      const handler = this.#handlers[method];
      if (handler === undefined) throw new WireError(-32601, `Method not found: ${method}`);
      const result = await handler(params ?? {});
      if (id !== undefined) send({ id, result: result ?? null });
    } catch (error) {
      const { code, data } = error instanceof WireError ? error : { code: -32603, data: undefined };
      const message = error instanceof Error ? error.message : String(error);
      if (id !== undefined) send({ id, error: { code, message, data } });
    }
  }
}

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}
