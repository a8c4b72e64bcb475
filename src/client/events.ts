import type { Event, Fragment } from "../contract/index.ts";
import { Refusal } from "../contract/index.ts";
import { pause } from "./pause.ts";
import { Unreachable, queryOf, send } from "./request.ts";
import type { HttpTarget } from "./request.ts";
import { SseReader } from "./sse.ts";
import type { SseMessage } from "./sse.ts";
import { isPassing } from "./wait-for.ts";

export interface EventsOptions {
  /** The cursor of an earlier item; without it the feed starts with new events. */
  readonly after?: string;
  readonly tree?: string;
  readonly session?: string;
  readonly signal?: AbortSignal;
}

export type FeedItem =
  /** The feed is connected. Read a snapshot now: every later change arrives as an event. */
  | { readonly type: "open"; readonly cursor: string | null }
  | { readonly type: "event"; readonly event: Event; readonly cursor: string | null }
  | { readonly type: "fragment"; readonly fragment: Fragment; readonly cursor: string | null }
  /** Discard what earlier items said, and read a new snapshot after the next `open`. */
  | { readonly type: "reset"; readonly message: string };

const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 5_000;
/** The daemon sends a heartbeat every 15 s. A connection that misses three of them is dead. */
const SILENCE_MAX_MS = 45_000;

/** Yields feed items; reconnects if necessary. Ends only when the signal is aborted or the daemon refuses. */
export async function* events(target: HttpTarget, options: EventsOptions): AsyncGenerator<FeedItem, void> {
  const state: State = { cursor: options.after ?? null, seen: new Map(), retryMs: RETRY_FIRST_MS };
  while (!isAborted(options.signal)) {
    try {
      yield* connection(target, options, state);
    } catch (error) {
      if (isAborted(options.signal)) return;
      if (!isPassing(error) && !isAbort(error)) throw error;
    }
    await pause(state.retryMs, options.signal);
    state.retryMs = Math.min(state.retryMs * 2, RETRY_MAX_MS);
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** True for the error that `Watch` causes when it aborts a silent connection. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

interface State {
  cursor: string | null;
  /** The highest event number seen per tree; within a tree, numbers only grow. */
  seen: Map<string, number>;
  retryMs: number;
}

async function* connection(
  target: HttpTarget,
  options: EventsOptions,
  state: State,
): AsyncGenerator<FeedItem, void> {
  const watch = new Watch(options.signal);
  try {
    watch.restart();
    const response = await send(
      target,
      `/api/events${queryOf({ tree: options.tree, session: options.session })}`,
      {
        headers: {
          accept: "text/event-stream",
          ...(state.cursor === null ? {} : { "last-event-id": state.cursor }),
        },
        signal: watch.signal,
      },
    );
    let isOpen = false;
    for await (const message of messagesOf(response, watch, target.url)) {
      state.retryMs = RETRY_FIRST_MS;
      const item = read(message, state);
      // Yields `open` only now, because the first message says where the feed begins. A snapshot that a
      // client reads before `open` could miss an event.
      if (!isOpen && item?.type !== "reset") yield { type: "open", cursor: state.cursor };
      isOpen = true;
      if (item !== null) yield item;
      if (item?.type === "reset") return;
    }
  } finally {
    watch.end();
  }
}

function read(message: SseMessage, state: State): FeedItem | null {
  if (message.event === "reset") {
    state.cursor = null;
    state.seen.clear();
    return { type: "reset", message: message.data };
  }
  if (message.event === "refusal") throw refusalIn(message.data);
  if (message.lastEventId !== "") state.cursor = message.lastEventId;
  if (message.data === "") return null;
  if (message.event === "fragment") {
    return { type: "fragment", fragment: JSON.parse(message.data) as Fragment, cursor: state.cursor };
  }
  if (message.event !== "event") return null;
  const event = JSON.parse(message.data) as Event;
  if (event.seq <= (state.seen.get(event.rootId) ?? -1)) return null;
  state.seen.set(event.rootId, event.seq);
  return { type: "event", event, cursor: state.cursor };
}

function refusalIn(data: string): Refusal {
  const { error } = JSON.parse(data) as { error: Pick<Refusal, "code" | "message" | "details"> };
  return new Refusal(error.code, error.message, error.details);
}

async function* messagesOf(response: Response, watch: Watch, url: string): AsyncGenerator<SseMessage, void> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const sse = new SseReader();
  try {
    for (;;) {
      watch.restart();
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw new Unreachable(url, error);
      });
      if (done) return;
      // The time that the reader needs for a message does not count as silence of the daemon.
      watch.pause();
      yield* sse.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Cancelling frees the connection. It fails if the body is already broken; that does not matter.
    await reader.cancel().catch((error: unknown) => error);
  }
}

/** Aborts a connection that has been silent for too long, or that nobody reads any more. */
class Watch {
  readonly #controller = new AbortController();
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal | undefined) {
    const { signal } = this.#controller;
    this.signal = outer === undefined ? signal : AbortSignal.any([outer, signal]);
  }

  restart(): void {
    this.pause();
    this.#timer = setTimeout(() => this.#controller.abort(), SILENCE_MAX_MS);
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    this.pause();
    this.#controller.abort();
  }
}
