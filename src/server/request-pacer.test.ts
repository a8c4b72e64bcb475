import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { PERSON, bearer, fakeOperations, start } from "./testing/fake-operations.ts";
import { RequestPacer } from "./admission.ts";

test("requests begin in their order, a few in each turn of the event loop", async () => {
  const pacer = new RequestPacer();
  const turns: number[][] = [[]];
  const done = Promise.withResolvers<void>();
  for (let n = 0; n < 30; n += 1) {
    pacer.enter(() => {
      turns.at(-1)?.push(n);
      if (n === 29) done.resolve();
    });
  }
  const count = (): void => {
    turns.push([]);
    if (turns.flat().length < 30) setImmediate(count);
  };
  setImmediate(count);
  await done.promise;
  assert.deepEqual(
    turns.flat(),
    Array.from({ length: 30 }, (_, n) => n),
  );
  assert.ok(Math.max(...turns.map((turn) => turn.length)) <= 8, JSON.stringify(turns));
});

test("those that wait together are let pass in their order, a few in each turn", async () => {
  const pacer = new RequestPacer();
  let turns = 0;
  let next = setImmediate(function count(): void {
    turns += 1;
    next = setImmediate(count);
  });
  const passed: number[] = [];
  await Promise.all(Array.from({ length: 30 }, (_, n) => pacer.passed().then(() => passed.push(n))));
  clearImmediate(next);
  assert.deepEqual(
    passed,
    Array.from({ length: 30 }, (_, n) => n),
  );
  assert.ok(turns >= 6, `${turns} turns`);
});

test("a request that comes alone begins at once", () => {
  let begun = false;
  new RequestPacer().enter(() => (begun = true));
  assert.ok(begun);
});

test("requests that reach the server together begin a few in each turn of the event loop", async () => {
  const fake = fakeOperations({ list: async () => ({}) as never });
  const turns: number[] = [0];
  const gate = {
    ...fake.gate,
    identify: (token: string) => {
      turns[turns.length - 1]! += 1;
      return fake.gate.identify(token);
    },
  };
  const { server, url, port } = await start({ ...fake, gate });
  try {
    // The first request loads the code that serves it.
    await (await fetch(`${url}/api/sessions`, { headers: bearer(PERSON) })).text();
    turns.splice(0, turns.length, 0);
    const sum = (): number => turns.reduce((all, each) => all + each, 0);
    const begun = Promise.withResolvers<void>();
    const count = (): void => {
      turns.push(0);
      if (sum() < 40) setImmediate(count);
      else begun.resolve();
    };
    setImmediate(count);
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    const request = `GET /api/sessions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${PERSON}\r\n\r\n`;
    socket.write(request.repeat(40));
    await begun.promise;
    socket.destroy();
    assert.ok(Math.max(...turns) <= 8, JSON.stringify(turns.filter((each) => each > 0)));
  } finally {
    await server.close();
  }
});
