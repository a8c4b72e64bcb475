import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import type { LineLimits } from "../process/line.ts";
import { boundedStream } from "./stream.ts";

function pipes(limits: Partial<LineLimits> = {}) {
  const input = new PassThrough();
  const output = new PassThrough();
  const seen: string[] = [];
  const stream = boundedStream({
    input,
    output,
    onNotification: (message) => seen.push(`notified ${message.method}`),
    onAnswer: (method) => seen.push(`answered ${method}`),
    onTooLong: (message) => seen.push(message),
    limits,
  });
  const reader = stream.readable.getReader();
  return { input, output, seen, stream, reader, writer: stream.writable.getWriter() };
}

const line = (message: object): string => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;

async function readAll(reader: ReadableStreamDefaultReader<AnyMessage>): Promise<AnyMessage[]> {
  const messages: AnyMessage[] = [];
  for (let next = await reader.read(); !next.done; next = await reader.read()) messages.push(next.value);
  return messages;
}

describe("the stream of an agent", () => {
  it("skips and counts lines that are no messages", async () => {
    const { input, reader, stream } = pipes();
    input.write("npm warn something\n\n[1,2]\n{broken\n42\n{}\n");
    input.write('{"jsonrpc":"1.0","id":1,"method":"x"}\n');
    input.end(line({ id: 1, method: "ask" }));
    assert.deepEqual(
      (await readAll(reader)).map((message) => "method" in message && message.method),
      ["ask"],
    );
    assert.equal(stream.noise(), 6);
  });

  it("joins a message that arrives in pieces, even split inside a character or with odd separators", async () => {
    const { input, reader } = pipes();
    const text = "é\u2028\u2029 end";
    const bytes = Buffer.from(line({ id: 1, method: "ask", params: { text } }));
    for (const byte of bytes) input.write(Buffer.from([byte]));
    input.end();
    const [message] = await readAll(reader);
    assert.deepEqual(message && "params" in message && message.params, { text });
  });

  it("passes a long text on in pieces of whole characters, and lets the event loop run in between", async () => {
    const input = new PassThrough();
    const texts: string[] = [];
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    count();
    const stream = boundedStream({
      input,
      output: new PassThrough(),
      onNotification: (message) => {
        const { update } = message.params as { update: { content: { text: string } } };
        texts.push(update.content.text);
        // Blocks for longer than an agent's time slice.
        for (const until = performance.now() + 8; performance.now() < until;);
      },
      onAnswer: () => undefined,
      onTooLong: assert.fail,
    });
    const text = "👩".repeat(40_000);
    const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
    input.end(line({ method: "session/update", params: { sessionId: "s", update } }));
    const before = turns;
    await readAll(stream.readable.getReader());
    isOver = true;
    assert.equal(texts.join(""), text);
    assert.ok(texts.length >= 4 && texts.every((each) => each.length <= 20_000 && each.isWellFormed()));
    assert.ok(turns - before >= texts.length, `${turns - before} turns for ${texts.length} pieces`);
  });

  it("drops an incomplete last line, and accepts a complete one without its newline", async () => {
    const half = pipes();
    half.input.end('{"jsonrpc":"2.0","id":1,"meth');
    assert.deepEqual(await readAll(half.reader), []);
    const whole = pipes();
    whole.input.end(line({ id: 1, method: "ask" }).trim());
    assert.equal((await readAll(whole.reader)).length, 1);
  });

  it("refuses an endless line, whether it looks like a message or not", async () => {
    for (const start of ["{", "x"]) {
      const { input, reader, seen } = pipes({ rawBytesMax: 1024 * 1024 });
      input.write(start);
      for (let count = 0; count < 20; count += 1) input.write(Buffer.alloc(64 * 1024, "y"));
      assert.deepEqual(await readAll(reader), []);
      assert.deepEqual(seen, ["it wrote a line of more than 1 MB"]);
    }
  });

  it("reads no further than the message that is being handled", async () => {
    const { input, reader } = pipes();
    const message = line({ id: 1, method: "ask", params: "z".repeat(8_000) });
    for (let count = 0; count < 100; count += 1) input.write(message);
    await reader.read();
    assert.ok(input.writableLength > 50 * message.length, "most of it still waits outside");
  });

  it("passes notifications on before a later answer is seen", async () => {
    const { input, output, seen, reader, writer } = pipes();
    void writer.write({ jsonrpc: "2.0", id: 7, method: "session/prompt" });
    await new Promise((resolve) => output.once("data", resolve));
    input.write(line({ method: "session/update", params: {} }) + line({ id: 7, result: {} }));
    input.end(line({ method: "later" }));
    await readAll(reader);
    assert.deepEqual(seen, ["notified session/update", "answered session/prompt", "notified later"]);
  });

  it("drops an answer to no request", async () => {
    const { input, reader, stream } = pipes();
    input.end(line({ id: 99, result: {} }));
    assert.deepEqual(await readAll(reader), []);
    assert.equal(stream.noise(), 1);
  });
});
