import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { SseReader } from "./sse.ts";
import { checkProperty } from "../testing/seeds.ts";

const STREAM =
  ': open\n\nid: c1\n\nid: c2\r\nevent: event\r\ndata: {"a":1}\r\n\r\ndata: one\ndata: two\n\nid\nevent: reset\rdata:x\r\r: beat\n\n';
const MESSAGES = [
  { event: "message", data: "", lastEventId: "c1" },
  { event: "event", data: '{"a":1}', lastEventId: "c2" },
  { event: "message", data: "one\ntwo", lastEventId: "c2" },
  { event: "reset", data: "x", lastEventId: "" },
];

describe("server-sent events", () => {
  test("a message that never ends is refused before it fills the memory", () => {
    for (const piece of ["data: ".padEnd(400, "x"), `data: ${"x".repeat(90)}\n`]) {
      const reader = new SseReader(1_000);
      assert.throws(() => {
        for (let n = 0; n < 12; n++) reader.push(piece);
      }, /max buffer size of 1000 characters/);
    }
  });

  test("fields, comments, ids and all three line ends are read as the standard says", () => {
    assert.deepEqual(new SseReader().push(STREAM), MESSAGES);
  });

  test("a stream reads the same however it is cut", () => {
    checkProperty(
      import.meta.filename,
      fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 12 }), (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), STREAM.length];
        const reader = new SseReader();
        const got = edges.slice(1).flatMap((edge, index) => reader.push(STREAM.slice(edges[index], edge)));
        assert.deepEqual(got, MESSAGES);
      }),
    );
  });
});
