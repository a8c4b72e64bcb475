import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Line, type LineLimits } from "./line.ts";
import { checkProperty } from "../../testing/seeds.ts";

const LIMITS = { stringBytesMax: 20, lineBytesMax: 400, partsMax: 50, depthMax: 8 } as const;

function lineOf(text: string, { sizes = [7], limits = {} as Partial<LineLimits> } = {}): Line {
  const line = new Line({ ...LIMITS, ...limits });
  const bytes = Buffer.from(text);
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] as number;
    line.add(bytes.subarray(at, at + size));
    at += size;
  }
  return line;
}

describe("a line of an agent", () => {
  it("is kept unchanged within its limits, in whatever pieces it arrives", () => {
    const value = fc.dictionary(fc.string({ maxLength: 5 }), fc.string({ maxLength: 5, unit: "binary" }), {
      maxKeys: 6,
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    checkProperty(
      import.meta.filename,
      fc.property(value, sizes, (record, lengths) => {
        const text = JSON.stringify(record);
        const limits = { stringBytesMax: 60 };
        assert.equal(lineOf(text, { sizes: lengths, limits }).take().toString(), text);
      }),
      { numRuns: 50 },
    );
  });

  it("stays JSON with the beginning of each long string, in whatever pieces it arrives", () => {
    const unit = fc.constantFrom("a", "é", "👩", '"', "\\", "\n", "\u0007", "\ud800");
    const long = fc.string({ minLength: 0, maxLength: 80, unit });
    const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 });
    checkProperty(
      import.meta.filename,
      fc.property(long, long, sizes, (one, other, lengths) => {
        const line = lineOf(JSON.stringify({ one, list: [other, 5] }), { sizes: lengths });
        const read = JSON.parse(line.take().toString()) as { one: string; list: [string, number] };
        for (const [whole, kept] of [
          [one, read.one],
          [other, read.list[0]],
        ] as const) {
          const head = kept.replace(/ … \[Kinfold left out \d+ bytes\]$/, "");
          assert.ok(whole.toWellFormed().startsWith(head.toWellFormed().replace(/\ufffd$/, "")));
          if (Buffer.byteLength(JSON.stringify(whole)) <= 22) assert.equal(kept, whole);
          assert.ok(Buffer.byteLength(JSON.stringify(head)) <= 22 + 12);
        }
        assert.equal(read.list[1], 5);
      }),
      { numRuns: 2_000 },
    );
  });

  it("says how many bytes of a string were cut", () => {
    const text = JSON.stringify({ a: "x".repeat(50), b: "short" });
    const read = JSON.parse(lineOf(text).take().toString()) as Record<string, string>;
    assert.deepEqual(read, { a: `${"x".repeat(20)} … [Kinfold left out 30 bytes]`, b: "short" });
  });

  it("is refused if it is nested too deeply, has too many values or stays too long", () => {
    assert.match(lineOf(`{"a":${"[".repeat(9)}`).problem ?? "", /nested more than 8/);
    assert.match(lineOf(`{"a":[${"1,".repeat(60)}`).problem ?? "", /more than 50 values/);
    const limits = { rawBytesMax: 1024 * 1024 };
    const big = `{"a":"${"x".repeat(1024 * 1024)}`;
    assert.match(lineOf(big, { sizes: [65_536], limits }).problem ?? "", /of more than 1 MB/);
  });

  it("can be reused after it was taken", () => {
    const line = lineOf(`{"a":"${"x".repeat(90)}`);
    line.take();
    line.add(Buffer.from('{"b":1}'));
    assert.equal(line.take().toString(), '{"b":1}');
  });
});
