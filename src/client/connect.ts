import type { AskOf, OperationName, OutputOf } from "../contract/index.ts";
import { OPERATIONS } from "../contract/index.ts";
import type { WaitOutput } from "../contract/index.ts";
import { events } from "./events.ts";
import type { EventsOptions, FeedItem } from "./events.ts";
import { ask } from "./request.ts";
import type { HttpTarget } from "./request.ts";
import { waitFor } from "./wait-for.ts";
import type { WaitForOptions } from "./wait-for.ts";

export interface Connection {
  /** The daemon's address, for example http://127.0.0.1:4680. */
  readonly url: string;
  readonly token: string;
  /** Another `fetch`, for example one that trusts a private certificate. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** The operations that have an HTTP address. Operations that only an agent may call have none. */
export type HttpOperationName = {
  [N in OperationName]: (typeof OPERATIONS)[N] extends { readonly http: object } ? N : never;
}[OperationName];

type Method<N extends HttpOperationName> =
  Record<string, never> extends AskOf<N>
    ? (input?: AskOf<N>, options?: CallOptions) => Promise<OutputOf<N>>
    : (input: AskOf<N>, options?: CallOptions) => Promise<OutputOf<N>>;

/** A method that fails rejects with a `Refusal`, or with `Unreachable` if nothing answers. */
export type Client = { readonly [N in HttpOperationName]: Method<N> } & {
  /** Yields numbered events and live text. Reconnects after a failure and never repeats an event. */
  events(options?: EventsOptions): AsyncGenerator<FeedItem, void>;
  /** Waits for the end of a round, even across restarts of the daemon. */
  waitFor(id: string, options?: WaitForOptions): Promise<WaitOutput>;
};

export function connect(connection: Connection): Client {
  const target: HttpTarget = {
    url: connection.url.replace(/\/+$/, ""),
    token: connection.token,
    fetch: connection.fetch ?? globalThis.fetch.bind(globalThis),
  };
  const methods: Record<string, unknown> = {
    events: (options: EventsOptions = {}) => events(target, options),
    waitFor: (id: string, options: WaitForOptions = {}) => waitFor(target, id, options),
  };
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    if (!("http" in OPERATIONS[name])) continue;
    methods[name] = (input: object = {}, options: CallOptions = {}) =>
      ask(target, name, { input, ...options });
  }
  return methods as Client;
}
