import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { setImmediate as tick } from "node:timers/promises";
import { FirstStart } from "./first-start.ts";

const folder = mkdtempSync(join(tmpdir(), "kinfold-first-"));
const program = join(folder, "agent");
writeFileSync(program, "");
after(() => rmSync(folder, { recursive: true, force: true }));

/** Creates fake starts of an agent. Each runs until the test resolves its promise in `begun`. */
function stage() {
  const gate = new FirstStart();
  const begun: PromiseWithResolvers<boolean>[] = [];
  const start = () => {
    const end = Promise.withResolvers<boolean>();
    begun.push(end);
    return end.promise;
  };
  return { begun, run: () => gate.run(program, start, (isOpen) => isOpen) };
}

it("no other start begins until the first has succeeded, then all begin together", async () => {
  const { begun, run } = stage();
  const all = [run(), run(), run()];
  await tick();
  assert.equal(begun.length, 1);
  begun[0]!.resolve(true);
  await tick();
  assert.equal(begun.length, 3);
  for (const each of begun) each.resolve(true);
  assert.deepEqual(await Promise.all(all), [true, true, true]);
});

it("after a failed first start, the next start also runs alone", async () => {
  const { begun, run } = stage();
  const all = [run(), run(), run()];
  begun[0]!.resolve(false);
  await tick();
  assert.equal(begun.length, 2);
  begun[1]!.resolve(true);
  await tick();
  assert.equal(begun.length, 3);
  begun[2]!.resolve(true);
  assert.deepEqual(await Promise.all(all), [false, true, true]);
});

it("a program that was upgraded has a first start again", async () => {
  const { begun, run } = stage();
  const first = run();
  begun[0]!.resolve(true);
  await first;
  utimesSync(program, new Date(), new Date(Date.now() + 60_000));
  const all = [run(), run()];
  await tick();
  assert.equal(begun.length, 2);
  begun[1]!.resolve(true);
  await tick();
  begun[2]!.resolve(true);
  assert.deepEqual(await Promise.all(all), [true, true]);
});
