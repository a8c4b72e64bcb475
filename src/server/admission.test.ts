import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "../client/index.ts";
import { Refusal } from "../contract/refusal.ts";
import { ROOM } from "./admission.ts";
import {
  PERSON,
  type Running,
  bearer,
  fakeOperations,
  sessionCaller,
  start,
} from "./testing/fake-operations.ts";

describe("over its capacity", () => {
  let running: Running;
  let writesWaiting = 0;
  let isStoreDown = false;
  let held = Promise.withResolvers<void>();
  const entered: string[] = [];

  before(async () => {
    const wait = async (_caller: unknown, input: { id?: string }): Promise<never> => {
      entered.push(input.id ?? "");
      await held.promise;
      return {} as never;
    };
    const answer = async (): Promise<never> => ({}) as never;
    const fake = fakeOperations({
      get: wait,
      prompt: wait,
      wait,
      cancel: answer,
      health: answer,
      list: answer,
    });
    const { identify } = fake.gate;
    const gate = {
      ...fake.gate,
      writesWaiting: () => writesWaiting,
      identify: (token: string) => (isStoreDown ? new Promise<never>(() => undefined) : identify(token)),
    };
    running = await start({ ...fake, gate });
  });
  after(() => running.server.close());

  const ask = (path: string, token = PERSON, init: RequestInit = {}): Promise<Response> =>
    fetch(running.url + path, { ...init, headers: { ...bearer(token), "content-type": "application/json" } });

  /** Starts `count` requests that keep waiting; the returned function lets them end. */
  async function under(count: number, token = PERSON): Promise<() => Promise<void>> {
    held = Promise.withResolvers<void>();
    entered.length = 0;
    const asked = Array.from({ length: count }, (_, n) => ask(`/api/sessions/s${n}`, token));
    while (entered.length < count) await new Promise((resolve) => setImmediate(resolve));
    return async () => {
      held.resolve();
      await Promise.all(asked.map(async (each) => (await each).text()));
    };
  }

  test("a request is refused at once with busy and Retry-After; health and cancel are answered", async () => {
    const release = await under(ROOM.kind);
    const response = await ask("/api/sessions");
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("retry-after"), "1");
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    assert.equal(error.code, "busy");
    assert.match(error.message, /nothing was changed\. Ask again in a second\.$/);
    assert.equal((await ask("/api/health")).status, 200);
    assert.equal((await ask("/api/sessions/s/cancel", PERSON, { method: "POST", body: "{}" })).status, 200);
    await release();
    assert.equal((await ask("/api/sessions")).status, 200);
  });

  test("a flood of one session keeps out neither another session nor a person", async () => {
    for (const token of ["one", "other"]) running.tokens.set(token, sessionCaller());
    const release = await under(ROOM.session, "one");
    assert.equal((await ask("/api/sessions", "one")).status, 503);
    assert.equal((await ask("/api/sessions", "other")).status, 200);
    assert.equal((await ask("/api/sessions")).status, 200);
    await release();
  });

  test("while the store has too many writes waiting, only what changes something is refused", async () => {
    writesWaiting = ROOM.writes;
    const change = await ask("/api/sessions/s/prompt", PERSON, { method: "POST", body: '{"prompt":"x"}' });
    assert.equal(change.status, 503);
    assert.equal((await ask("/api/sessions")).status, 200);
    writesWaiting = 0;
  });

  test("a wait leaves its place to others, and a session has room for a few of them", async () => {
    running.tokens.set("waiter", sessionCaller());
    held = Promise.withResolvers<void>();
    entered.length = 0;
    const statuses: number[] = [];
    const answered = async (asked: Promise<Response>): Promise<void> => {
      const response = await asked;
      await response.text();
      statuses.push(response.status);
    };
    /** Waits until each request is running or has been answered. */
    const decided = async (count: number): Promise<void> => {
      while (entered.length + statuses.length < count) await new Promise((resolve) => setImmediate(resolve));
    };
    const waits = Array.from({ length: ROOM.sessionLong + 1 }, (_, n) =>
      answered(ask(`/api/sessions/w${n}/wait`, "waiter")),
    );
    await decided(waits.length);
    assert.deepEqual([entered.length, statuses], [ROOM.sessionLong, [503]], "one more wait is too many");
    const others = Array.from({ length: ROOM.session }, (_, n) =>
      answered(ask(`/api/sessions/s${n}`, "waiter")),
    );
    await decided(waits.length + others.length);
    assert.deepEqual([entered.length, statuses], [ROOM.sessionLong + ROOM.session, [503]]);
    held.resolve();
    await Promise.all([...waits, ...others]);
  });

  test("a tool call that there is no room for is refused as a tool refuses", async () => {
    running.tokens.set("agent", sessionCaller());
    const call = (more: object = {}): Promise<Response> => {
      const params = { name: "list_sessions", arguments: {}, ...more };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params });
      return ask("/mcp", "agent", { method: "POST", body });
    };
    const release = await under(ROOM.session, "agent");
    const refused = await call();
    assert.equal(refused.status, 200);
    assert.equal(refused.headers.get("retry-after"), "1");
    const { id, result } = (await refused.json()) as {
      id: number;
      result: { isError: boolean; content: { text: string }[] };
    };
    assert.deepEqual([id, result.isError], [7, true]);
    assert.match(result.content[0]?.text ?? "", /^busy: .* nothing was changed\. Ask again in a second\.$/);
    const long = await call({ arguments: { filler: "x".repeat(100_000) } });
    assert.equal(long.status, 503, "a long one is not read");
    const list = JSON.stringify({ jsonrpc: "2.0", id: 8, method: "tools/list" });
    assert.equal((await ask("/mcp", "agent", { method: "POST", body: list })).status, 503);
    await release();
  });

  test("a wait that there is no room for is refused as a tool refuses", async () => {
    running.tokens.set("many", sessionCaller());
    held = Promise.withResolvers<void>();
    entered.length = 0;
    const waits = Array.from({ length: ROOM.sessionLong }, (_, n) => ask(`/api/sessions/m${n}/wait`, "many"));
    while (entered.length < ROOM.sessionLong) await new Promise((resolve) => setImmediate(resolve));
    const params = { name: "wait_session", arguments: {} };
    const body = JSON.stringify({ jsonrpc: "2.0", id: "w", method: "tools/call", params });
    const refused = await ask("/mcp", "many", { method: "POST", body });
    assert.match(
      await refused.text(),
      /"id":"w".*"isError":true.*busy: This session has too many waiting calls/,
    );
    held.resolve();
    await Promise.all(waits);
  });

  test("health is answered while the store answers nobody", async () => {
    assert.equal((await ask("/api/health")).status, 200);
    isStoreDown = true;
    assert.equal((await ask("/api/health")).status, 200);
    isStoreDown = false;
  });

  test("a client asks a busy daemon again, when it was told to, and gives up after a few times", async () => {
    let refusals = 2;
    let asked = 0;
    const list = async (): Promise<never> => {
      asked += 1;
      if (refusals-- > 0) throw new Refusal("busy", "Busy.", { retryAfterMs: 1 });
      return { sessions: [] } as never;
    };
    const busy = await start(fakeOperations({ list }));
    const client = connect({ url: busy.url, token: PERSON });
    await client.list({});
    assert.equal(asked, 3);
    refusals = Infinity;
    await assert.rejects(client.list({}), { code: "busy" });
    assert.ok(asked < 20);
    await busy.server.close();
  });
});
