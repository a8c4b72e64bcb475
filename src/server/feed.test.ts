import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { connect as connectSocket } from "node:net";
import { afterEach, describe, test } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import { SseReader } from "../client/sse.ts";
import type { SseMessage } from "../client/sse.ts";
import { Refusal } from "../contract/index.ts";
import type { Event } from "../contract/index.ts";
import { PERSON, bearer, fakeOperations, sampleEvent, start } from "./testing/fake-operations.ts";
import type { FakeOperations, Running } from "./testing/fake-operations.ts";
import type { ServerOptions } from "./routes.ts";

const open: Running[] = [];

async function serve(
  fake: FakeOperations = fakeOperations(),
  options: Partial<ServerOptions> = {},
): Promise<Running> {
  const running = await start(fake, options);
  open.push(running);
  return running;
}
afterEach(async () => {
  for (const running of open.splice(0)) await running.server.close();
});

/** Reads messages one by one; null marks the end of the stream. */
class Reader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #sse = new SseReader();
  readonly #queue: SseMessage[] = [];
  readonly #decoder = new TextDecoder();

  constructor(response: Response) {
    assert.ok(response.body);
    this.#reader = response.body.getReader();
  }

  async next(): Promise<SseMessage | null> {
    while (this.#queue.length === 0) {
      const { done, value } = await this.#reader.read();
      if (done) return null;
      this.#queue.push(...this.#sse.push(this.#decoder.decode(value, { stream: true })));
    }
    return this.#queue.shift() ?? null;
  }

  async event(): Promise<{ event: Event; id: string }> {
    for (;;) {
      const message = await this.next();
      assert.ok(message, "the stream ended");
      if (message.event === "event") return { event: JSON.parse(message.data), id: message.lastEventId };
    }
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

async function read(
  running: Running,
  path = "/api/events",
  headers: Record<string, string> = {},
): Promise<Reader> {
  const response = await fetch(running.url + path, { headers: { ...bearer(PERSON), ...headers } });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  assert.equal(response.headers.get("cache-control"), "no-store");
  return new Reader(response);
}

describe("feed", () => {
  test("events and fragments arrive as messages, and only the last of a batch carries the cursor", async () => {
    const running = await serve();
    const root = randomUUID();
    const reader = await read(running);
    assert.equal((await reader.next())?.lastEventId, "e1.0");
    const fragment = {
      rootId: root,
      sessionId: root,
      turnId: root,
      kind: "text" as const,
      text: "two\nlines",
    };
    running.feed.push([sampleEvent(root, 1), sampleEvent(root, 2)], [fragment]);
    const got = [await reader.next(), await reader.next(), await reader.next()];
    assert.deepEqual(
      got.map((message) => [message?.event, message?.lastEventId]),
      [
        ["event", "e1.0"],
        ["event", "e1.0"],
        ["fragment", "e1.1"],
      ],
    );
    assert.deepEqual(JSON.parse(got[2]?.data ?? ""), fragment);
    await reader.cancel();
  });

  test("a feed resumes after its cursor, and Last-Event-ID wins over the address", async () => {
    const running = await serve();
    const root = randomUUID();
    for (let seq = 1; seq <= 5; seq++) running.feed.push([sampleEvent(root, seq)]);
    const byAddress = await read(running, "/api/events?after=e1.2");
    assert.equal((await byAddress.event()).event.seq, 3);
    const byHeader = await read(running, "/api/events?after=e1.2", { "last-event-id": "e1.4" });
    assert.deepEqual(await byHeader.event().then(({ event, id }) => [event.seq, id]), [5, "e1.5"]);
    await Promise.all([byAddress.cancel(), byHeader.cancel()]);
  });

  test("a cut in the middle of a batch loses nothing", async () => {
    const running = await serve();
    const root = randomUUID();
    running.feed.push([sampleEvent(root, 1)]);
    running.feed.push([2, 3, 4].map((seq) => sampleEvent(root, seq)));
    const reader = await read(running, "/api/events?after=e1.0");
    await reader.event();
    const { id } = await reader.event();
    await reader.cancel();
    const resumed = await read(running, "/api/events", { "last-event-id": id });
    assert.equal((await resumed.event()).event.seq, 2);
    await resumed.cancel();
  });

  test("what is asked of the feed reaches it, and unknown parameters are refused", async () => {
    const asked: unknown[] = [];
    const fake = fakeOperations();
    const gate = {
      ...fake.gate,
      feed: (...[caller, request]: Parameters<typeof fake.gate.feed>) => {
        asked.push({ tree: request.tree, session: request.session, after: request.after });
        return fake.gate.feed(caller, request);
      },
    };
    const running = await serve({ ...fake, gate });
    const reader = await read(running, "/api/events?tree=t&session=s");
    await reader.cancel();
    assert.deepEqual(asked, [{ tree: "t", session: "s", after: null }]);
    const response = await fetch(`${running.url}/api/events?trees=t`, { headers: bearer(PERSON) });
    assert.equal(response.status, 400);
  });

  test("a cursor that cannot be served answers a reset that clears it, and the stream ends", async () => {
    const running = await serve();
    const reader = await read(running, "/api/events?after=e0.7");
    const message = await reader.next();
    assert.equal(message?.event, "reset");
    assert.equal(message?.lastEventId, "");
    assert.equal(JSON.parse(message?.data ?? "").error.code, "feed_reset");
    assert.equal(await reader.next(), null);
  });

  test("another refusal of the feed is told before the stream ends", async () => {
    const fake = fakeOperations();
    const gate = {
      ...fake.gate,
      // oxlint-disable-next-line require-yield
      feed: async function* () {
        await immediate();
        throw new Refusal("not_found", "No tree t.");
      },
    };
    const running = await serve({ ...fake, gate });
    const reader = await read(running, "/api/events?tree=t");
    const message = await reader.next();
    assert.equal(message?.event, "refusal");
    assert.equal(JSON.parse(message?.data ?? "").error.code, "not_found");
    assert.equal(await reader.next(), null);
  });

  test("many small batches arrive whole and in order", async () => {
    const running = await serve();
    const root = randomUUID();
    const reader = await read(running);
    await reader.next();
    for (let seq = 1; seq <= 2_000; seq++) {
      running.feed.push([sampleEvent(root, seq)]);
      if (seq % 100 === 0) await immediate();
    }
    for (let seq = 1; seq <= 2_000; seq++) assert.equal((await reader.event()).event.seq, seq);
    await reader.cancel();
  });

  test("a client that goes away closes its feed", async () => {
    const running = await serve();
    const reader = await read(running);
    await reader.next();
    assert.equal(running.feed.readers, 1);
    await reader.cancel();
    await running.feed.unread();
    running.feed.push([sampleEvent(randomUUID(), 1)]);
    await immediate();
    assert.deepEqual([running.feed.readers, running.feed.given], [0, 0]);
  });

  test("a revoked token closes its stream, and no other", async () => {
    const running = await serve();
    running.tokens.set("brief", { kind: "person", id: "p2", name: "Bob" });
    const kept = await read(running);
    const cut = await read(running, "/api/events", bearer("brief"));
    await Promise.all([kept.next(), cut.next()]);
    running.tokens.delete("brief");
    assert.equal(await cut.next(), null);
    running.feed.push([sampleEvent(randomUUID(), 1)]);
    assert.equal((await kept.event()).event.seq, 1);
    await kept.cancel();
  });

  test("a daemon that stops ends its streams", async () => {
    const running = await serve();
    const reader = await read(running);
    await reader.next();
    await running.server.drain();
    assert.equal(await reader.next(), null);
  });

  test("a client that does not read is cut off, and little waits for it", async () => {
    const running = await serve(fakeOperations(), { stallMs: 50 });
    const root = randomUUID();
    const socket = connectSocket(running.port, "127.0.0.1");
    socket.write(
      `GET /api/events?after=e1.0 HTTP/1.1\r\nHost: 127.0.0.1:${running.port}\r\nAuthorization: Bearer ${PERSON}\r\n\r\n`,
    );
    await new Promise((resolve) => socket.once("readable", resolve));
    const text = "x".repeat(200_000);
    for (let seq = 1; seq <= 400; seq++) running.feed.push([sampleEvent(root, seq, text)]);
    await running.feed.unread();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    let leftBytes = 0;
    // The client may see the cut connection as a reset.
    socket.on("error", (error) => assert.match(error.message, /ECONNRESET/));
    socket.on("data", (chunk: Buffer) => (leftBytes += chunk.length));
    await closed;
    // Less than 20 of the 80 MB were sent: only as much as the system's socket buffers hold.
    assert.ok(leftBytes < 20_000_000, `${leftBytes} bytes waited for the client`);
    assert.ok(running.feed.given < 100, `${running.feed.given} of 400 batches were taken from the feed`);
  });
});
