import type { Context } from "hono";
import { Refusal } from "../contract/refusal.ts";
import type { Log } from "../log.ts";
import type { FeedBatch, FeedRequest } from "../operations/port.ts";
import { refusalBody, refusalOf } from "./refusal-response.ts";
import type { HttpRequest } from "./request.ts";
import { unknownField } from "./input.ts";
import type { Env, ServerOptions } from "./routes.ts";

type FeedOptions = Required<Pick<ServerOptions, "gate" | "log" | "stallMs">>;

const BATCH_MS = 20;
const BEAT_MS = 15_000;
const CHUNK_BYTES_MAX = 256 * 1024;
const UNREAD_BYTES_MAX = 64 * 1024;
const PARAMETERS = ["after", "tree", "session"];

/**
 * Serves events as server-sent events. Only the last message of a batch carries its cursor, so that a client
 * that is cut off in the middle receives the whole batch again. A client that does not read is disconnected
 * and resumes from its cursor.
 */
export function serveFeed(c: Context<Env>, options: FeedOptions): Response {
  const request = c.var.request;
  request.isLong = true;
  const wanted = requestOf(c, request.signal);
  const headers = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  const feed = options.gate.feed(request.caller, wanted);
  const writer = new SseWriter(request, options.stallMs);
  void pump(feed[Symbol.asyncIterator](), writer, { request, log: options.log });
  return c.body(writer.stream, 200, headers);
}

function requestOf(c: Context<Env>, signal: AbortSignal): FeedRequest {
  const query = c.req.queries();
  for (const [name, values] of Object.entries(query)) {
    if (!PARAMETERS.includes(name)) throw unknownField(name, PARAMETERS);
    if (values.length > 1)
      throw new Refusal("invalid_input", `${name} is given twice in the address.`, { field: name });
  }
  const one = (name: string): string | null => query[name]?.[0] || null;
  // On a reconnect, Last-Event-ID is newer than the cursor in the address.
  const after = c.req.header("last-event-id") || one("after");
  return { after, tree: one("tree"), session: one("session"), signal };
}

async function pump(
  feed: AsyncIterator<FeedBatch>,
  writer: SseWriter,
  { request, log }: { request: HttpRequest; log: Log },
): Promise<void> {
  const beat = setInterval(() => writer.beat(), BEAT_MS).unref();
  try {
    let next = step(feed);
    let isRead = await writer.write(": open\n\n");
    while (isRead) {
      const first = await next;
      if (first.done === true) break;
      const chunk = await gather(feed, first.value, writer.dueInMs());
      next = chunk.next;
      isRead = await writer.write(chunk.text);
    }
  } catch (error) {
    if (!request.signal.aborted) writer.last(lastMessage(error, log));
  } finally {
    clearInterval(beat);
    writer.end();
    feed.return?.().catch((error: unknown) => log.warn({ err: error }, "feed closed with an error"));
  }
}

/** Requests the next batch. The empty handler avoids an unhandled rejection; the promise still rejects. */
function step(feed: AsyncIterator<FeedBatch>): Promise<IteratorResult<FeedBatch>> {
  const next = feed.next();
  next.catch((error: unknown) => error);
  return next;
}

/** Builds one chunk: the first batch, and the batches that arrive before the next chunk is due. */
async function gather(
  feed: AsyncIterator<FeedBatch>,
  first: FeedBatch,
  dueInMs: number,
): Promise<{ text: string; next: Promise<IteratorResult<FeedBatch>> }> {
  let text = render(first);
  let next = step(feed);
  if (dueInMs <= 0) return { text, next };
  const due = Promise.withResolvers<null>();
  const timer = setTimeout(() => due.resolve(null), dueInMs);
  while (text.length < CHUNK_BYTES_MAX) {
    // An error ends this chunk. The caller of `gather` gets the error when it awaits `next`.
    const batch = await Promise.race([next, due.promise]).catch(() => null);
    if (batch === null || batch.done === true) break;
    text += render(batch.value);
    next = step(feed);
  }
  clearTimeout(timer);
  return { text, next };
}

function render(batch: FeedBatch): string {
  const messages = [
    ...batch.events.map((event) => `event: event\ndata: ${JSON.stringify(event)}\n`),
    ...batch.fragments.map((fragment) => `event: fragment\ndata: ${JSON.stringify(fragment)}\n`),
  ];
  const id = `id: ${batch.cursor}\n`;
  // Nothing to show: only the cursor advances.
  if (messages.length === 0) return `${id}\n`;
  return messages
    .map((message, index) => (index === messages.length - 1 ? `${id}${message}\n` : `${message}\n`))
    .join("");
}

/** Builds the last message. After a reset the empty id makes a browser forget its cursor. */
function lastMessage(error: unknown, log: Log): string {
  const refusal = refusalOf(error, log);
  const data = JSON.stringify(refusalBody(refusal));
  return refusal.code === "feed_reset"
    ? `id\nevent: reset\ndata: ${data}\n\n`
    : `event: refusal\ndata: ${data}\n\n`;
}

class SseWriter {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #request: HttpRequest;
  readonly #stallMs: number;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #onRead: (() => void) | null = null;
  #wroteAt = Number.NEGATIVE_INFINITY;

  constructor(request: HttpRequest, stallMs: number) {
    this.#request = request;
    this.#stallMs = stallMs;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#onRead?.(),
        cancel: () => {
          this.#controller = null;
          this.#onRead?.();
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_BYTES_MAX }),
    );
    request.signal.addEventListener("abort", () => this.end(), { once: true });
  }

  dueInMs(): number {
    return this.#wroteAt + BATCH_MS - performance.now();
  }

  /** Resolves to true when the client can take more, or to false if it is no longer connected. */
  async write(text: string): Promise<boolean> {
    this.last(text);
    while (this.#controller !== null && (this.#controller.desiredSize ?? 0) <= 0) {
      const read = Promise.withResolvers<boolean>();
      const timer = setTimeout(() => read.resolve(false), this.#stallMs);
      this.#onRead = () => read.resolve(true);
      const isRead = await read.promise;
      clearTimeout(timer);
      this.#onRead = null;
      if (isRead) continue;
      this.#request.cut();
      return false;
    }
    return this.#controller !== null;
  }

  last(text: string): void {
    this.#controller?.enqueue(this.#encoder.encode(text));
    this.#wroteAt = performance.now();
  }

  beat(): void {
    if ((this.#controller?.desiredSize ?? 0) > 0)
      this.#controller?.enqueue(this.#encoder.encode(": beat\n\n"));
  }

  end(): void {
    const controller = this.#controller;
    this.#controller = null;
    controller?.close();
    this.#onRead?.();
  }
}
