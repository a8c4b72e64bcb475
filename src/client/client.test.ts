import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, describe, test } from "node:test";
import { OPERATIONS, Refusal } from "../contract/index.ts";
import type { OperationSpec } from "../contract/index.ts";
import { randomFrom, seedsOf } from "../testing/seeds.ts";
import { keptPort } from "../system/testing/kept-port.ts";
import { PERSON, fakeOperations, sampleEvent, start } from "../server/testing/fake-operations.ts";
import type { FakeOperations, Running } from "../server/testing/fake-operations.ts";
import { Unreachable, connect } from "./index.ts";
import type { Client, FeedItem } from "./index.ts";

const open: Running[] = [];

async function serve(fake: FakeOperations, port = 0): Promise<Running> {
  const config = { host: "127.0.0.1", port, allowHosts: [], allowRemote: false, tls: null };
  const running = await start(fake, { config });
  open.push(running);
  return running;
}
afterEach(async () => {
  for (const running of open.splice(0)) await running.server.close();
});

function clientOf(running: Running, token = PERSON): Client {
  return connect({ url: `${running.url}/`, token });
}

describe("operations", () => {
  test("every operation with an address has a method", async () => {
    const client = clientOf(await serve(fakeOperations()));
    for (const [name, spec] of Object.entries(OPERATIONS) as [string, OperationSpec][]) {
      assert.equal(name in client, spec.http !== undefined, name);
    }
  });

  test("path, query and body carry the input, whatever is in it", async () => {
    const seen: unknown[] = [];
    const note = async (_caller: unknown, input: unknown): Promise<never> => {
      seen.push(input);
      return {} as never;
    };
    const client = clientOf(
      await serve(
        fakeOperations({ wait: note, list: note, create: note, update: note, detach: note, health: note }),
      ),
    );
    await client.wait({ id: "a b/ü?", timeoutMs: 5, until: "turn" });
    await client.list({ unseen: true, limit: 7 });
    await client.create({ prompt: "ü\u2028".repeat(2) });
    await client.update({ id: "x", title: null, seen: true });
    await client.detach({ id: "x" });
    await client.health();
    assert.deepEqual(seen, [
      { id: "a b/ü?", timeoutMs: 5, until: "turn" },
      { unseen: true, limit: 7 },
      { prompt: "ü\u2028".repeat(2), source: "http" },
      { id: "x", title: null, seen: true },
      { id: "x" },
      {},
    ]);
  });

  test("a refusal is thrown unchanged, even one of a newer daemon", async () => {
    const refusal = new Refusal("limit_depth", "Too deep.", { depth: 5 });
    const running = await serve(fakeOperations({ create: () => Promise.reject(refusal) }));
    await assert.rejects(clientOf(running).create({ prompt: "x" }), refusal);
    await assert.rejects(clientOf(running, "wrong").health(), { code: "unauthorized" });
    const newer = connect({
      url: running.url,
      token: PERSON,
      fetch: async () =>
        Response.json({ error: { code: "brand_new", message: "No.", details: {} } }, { status: 409 }),
    });
    await assert.rejects(newer.health(), {
      code: "internal",
      message: "No.",
      details: { code: "brand_new" },
    });
    const page = connect({ url: running.url, token: PERSON, fetch: async () => new Response("<html>") });
    await assert.rejects(page.health(), /is not JSON/);
  });

  test("a missing path field is refused before anything is sent", async () => {
    const client = connect({ url: "http://127.0.0.1:1", token: PERSON });
    await assert.rejects(client.get({ id: "" }), { code: "invalid_input" });
  });

  test("an address that does not answer is Unreachable, and an abort stays an abort", async () => {
    const running = await serve(fakeOperations({ health: () => new Promise(() => undefined) }));
    const controller = new AbortController();
    const asked = clientOf(running).health({}, { signal: controller.signal });
    controller.abort();
    await assert.rejects(asked, { name: "AbortError" });
    await running.server.close();
    await assert.rejects(clientOf(running).health(), Unreachable);
  });
});

describe("waitFor", () => {
  test("waits across a restart of the daemon", async () => {
    const entered = Promise.withResolvers<void>();
    const first = await serve(
      fakeOperations({
        wait: (_caller, _input, call) =>
          new Promise((_, reject) => {
            call.signal.addEventListener("abort", () => reject(new Error("aborted")));
            entered.resolve();
          }),
      }),
      await keptPort(),
    );
    const waiting = clientOf(first).waitFor("x");
    await entered.promise;
    await first.server.close();
    const timeouts: number[] = [];
    const wait = async (_caller: unknown, input: { timeoutMs: number }): Promise<never> => {
      timeouts.push(input.timeoutMs);
      return (
        timeouts.length < 3 ? { timedOut: true, outcome: null } : { timedOut: false, outcome: "completed" }
      ) as never;
    };
    await serve(fakeOperations({ wait }), first.port);
    assert.equal((await waiting).outcome, "completed");
    assert.deepEqual(timeouts, [45_000, 45_000, 45_000]);
  });

  test("returns timedOut at the caller's deadline, and throws errors that a restart does not explain", async () => {
    const running = await serve(
      fakeOperations({ wait: async () => ({ timedOut: true, outcome: null }) as never }),
    );
    assert.equal((await clientOf(running).waitFor("x", { timeoutMs: 0 })).timedOut, true);
    const other = await serve(
      fakeOperations({ wait: () => Promise.reject(new Refusal("not_found", "No x.")) }),
    );
    await assert.rejects(clientOf(other).waitFor("x"), { code: "not_found" });
    await running.server.close();
    await assert.rejects(clientOf(running).waitFor("x", { timeoutMs: 50 }), Unreachable);
  });
});

describe("events", () => {
  async function take(feed: AsyncGenerator<FeedItem, void>, type: FeedItem["type"]): Promise<FeedItem> {
    for (;;) {
      const { value, done } = await feed.next();
      assert.ok(done !== true && value);
      if (value.type === type) return value;
    }
  }

  test("a feed goes on after the daemon came back, without gap or repetition", async () => {
    const fake = fakeOperations();
    const first = await serve(fake, await keptPort());
    const [a, b] = [randomUUID(), randomUUID()];
    const controller = new AbortController();
    const feed = clientOf(first).events({ signal: controller.signal });
    await take(feed, "open");
    fake.feed.push([sampleEvent(a, 1), sampleEvent(b, 1)]);
    const seen = [await take(feed, "event"), await take(feed, "event")];
    await first.server.close();
    fake.feed.push([sampleEvent(a, 1), sampleEvent(a, 2)]);
    fake.feed.push([sampleEvent(b, 1), sampleEvent(b, 2)]);
    await serve(fake, first.port);
    seen.push(await take(feed, "event"), await take(feed, "event"));
    const numbers = seen.map((item) => (item.type === "event" ? [item.event.rootId, item.event.seq] : []));
    assert.deepEqual(numbers, [
      [a, 1],
      [b, 1],
      [a, 2],
      [b, 2],
    ]);
    controller.abort();
    assert.equal((await feed.next()).done, true);
  });

  for (const seed of seedsOf(import.meta.filename)) {
    test(`fifty random cuts leave neither gap nor repetition (seed ${seed})`, async () => {
      const chance = randomFrom(seed);
      const fake = fakeOperations();
      const running = await serve(fake);
      const roots: string[] = [randomUUID(), randomUUID(), randomUUID()];
      const total = 600;
      const seqs = new Map(roots.map((root) => [root, 0]));
      const push = (): void => {
        const root = roots[Math.floor(chance() * roots.length)] ?? "";
        const seq = (seqs.get(root) ?? 0) + 1;
        seqs.set(root, seq);
        fake.feed.push([sampleEvent(root, seq)]);
      };
      let cuts = 0;
      const cutting: typeof fetch = async (input, init) => {
        const response = await fetch(input, init);
        if (cuts >= 50 || response.body === null) return response;
        cuts += 1;
        return new Response(response.body.pipeThrough(cutAfter(Math.floor(chance() * 3_000))), response);
      };
      const controller = new AbortController();
      const client = connect({ url: running.url, token: PERSON, fetch: cutting });
      fake.feed.push([]);
      const feed = client.events({ after: "e1.0", signal: controller.signal });
      for (let n = 0; n < total; n++) push();
      const last = new Map<string, number>();
      for (let got = 0; got < total; got++) {
        const item = await take(feed, "event");
        assert.ok(item.type === "event");
        assert.equal(item.event.seq, (last.get(item.event.rootId) ?? 0) + 1);
        last.set(item.event.rootId, item.event.seq);
      }
      assert.deepEqual(last, new Map([...seqs].filter(([, seq]) => seq > 0)));
      assert.ok(cuts > 10, `${cuts} cuts`);
      controller.abort();
      await feed.return();
    });
  }

  test("a reset is reported, and the feed continues from then on", async () => {
    const fake = fakeOperations();
    const running = await serve(fake);
    const controller = new AbortController();
    const feed = clientOf(running).events({ after: "e0.9", signal: controller.signal });
    await take(feed, "reset");
    await take(feed, "open");
    const root = randomUUID();
    const next = take(feed, "event");
    fake.feed.push([sampleEvent(root, 5)]);
    const item = await next;
    assert.ok(item.type === "event" && item.event.seq === 5 && item.cursor?.startsWith("e1."));
    controller.abort();
  });

  test("a refusal ends the feed", async () => {
    const running = await serve(fakeOperations());
    await assert.rejects(clientOf(running, "wrong").events().next(), { code: "unauthorized" });
  });
});

/** Breaks the stream after `bytesMax` bytes, as a failing network does. */
function cutAfter(bytesMax: number): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const rest = bytesMax - bytes;
      bytes += chunk.length;
      if (rest > 0) controller.enqueue(chunk.subarray(0, rest));
      if (bytes >= bytesMax) controller.error(new Error("cut"));
    },
  });
}
