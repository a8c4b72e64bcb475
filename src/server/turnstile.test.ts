import assert from "node:assert/strict";
import { test } from "node:test";
import { Turnstile } from "./turnstile.ts";

test("requests begin in their order, a few in each turn of the event loop", async () => {
  const turnstile = new Turnstile();
  const turns: number[][] = [[]];
  const done = Promise.withResolvers<void>();
  for (let n = 0; n < 30; n += 1) {
    turnstile.enter(() => {
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

test("a request that comes alone begins at once", () => {
  let begun = false;
  new Turnstile().enter(() => (begun = true));
  assert.ok(begun);
});
