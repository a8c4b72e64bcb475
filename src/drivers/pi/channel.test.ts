import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { it } from "node:test";
import { openChannel } from "./channel.ts";

function pair() {
  const input = new PassThrough();
  const output = new PassThrough();
  const events: string[] = [];
  const onEvent = (event: { type: string; text?: unknown }): void => {
    events.push(`${event.type} ${String(event.text)}`);
  };
  return {
    input,
    output,
    events,
    channel: openChannel({ input, output, onEvent, limits: { rawBytesMax: 1_000 } }),
  };
}

it("a line ends with LF only: other separators are part of a string", async () => {
  const { input, events, channel } = pair();
  input.write(`{"type":"a","text":"one\u2028two"}\n{"type":"b","te`);
  input.write(`xt":"three"}\nnoise\n\n{"type":"c","text":4}\n`);
  input.end();
  await channel.closed;
  assert.deepEqual(events, ["a one\u2028two", "b three", "c 4"]);
});

it("an answer reaches its request, whatever comes in between", async () => {
  const { input, output, channel } = pair();
  const sent: string[] = [];
  output.on("data", (chunk: Buffer) =>
    sent.push(
      ...String(chunk)
        .matchAll(/"id":"(\w+)"/g)
        .map(([, id]) => id!),
    ),
  );
  const first = channel.send({ type: "get_state" });
  const second = channel.send({ type: "steer" });
  while (sent.length < 2) await new Promise((resolve) => setImmediate(resolve));
  input.write(`{"type":"response","id":"${sent[1]}","success":false,"error":"not now"}\n{"type":"x"}\n`);
  input.write(`{"type":"response","id":"${sent[0]}","success":true,"data":{"a":1}}\n`);
  assert.deepEqual(await first, { ok: true, data: { a: 1 } });
  assert.deepEqual(await second, { ok: false, error: "not now" });
  input.end();
  await channel.closed;
});

it("a channel that closes or floods answers every open request with an error", async () => {
  const { input, channel } = pair();
  const left = channel.send({ type: "get_state" });
  input.write("x".repeat(2_000));
  assert.equal((await left).ok, false);
  assert.equal(channel.isClosed(), true);
  assert.equal((await channel.send({ type: "abort" })).ok, false);
});

it("a long delta is passed on in short pieces, never cut inside a character", async () => {
  const input = new PassThrough();
  const deltas: string[] = [];
  const channel = openChannel({
    input,
    output: new PassThrough(),
    onEvent: ({ assistantMessageEvent }) => {
      deltas.push((assistantMessageEvent as { delta: string }).delta);
    },
  });
  const delta = "😀".repeat(30_000);
  const event = { type: "message_update", assistantMessageEvent: { type: "text_delta", delta } };
  input.end(`${JSON.stringify(event)}\n`);
  await channel.closed;
  assert.equal(deltas.join(""), delta);
  assert.ok(Math.max(...deltas.map((each) => each.length)) <= 16 * 1024);
  assert.ok(deltas.every((each) => each.isWellFormed()));
});
