import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { spansOf, wordsOf } from "./words.ts";
import { checkProperty } from "../testing/seeds.ts";

describe("words", () => {
  const SAME: readonly (readonly [text: string, words: string])[] = [
    ["Hello, World!", "hello world"],
    ["CAFÉ cafe\u0301 naïve Ünïcödé", "cafe cafe naive unicode"],
    ["Straße STRASSE ΟΔΟΣ οδός İstanbul", "strasse strasse οδοσ οδοσ istanbul"],
    [
      "session_id parent-session.id src/auth/login.test.ts:12",
      "session id parent session id src auth login test ts 12",
    ],
    ["anna.smith+test@example.com", "anna smith test example com"],
    ["日本語テスト", "日 本 語 テ ス ト"],
    ["ガ ｶﾞ", "ガ カ"],
    ["데이터를", "데 이 터 를"],
    ["ﬁne ９９ ½", "fine 99 1 2"],
    ["हिन्दी עִבְרִית", "हिन्दी עִבְרִית"],
    ["a\u0000b\u0007c ❤️ 🙂 … → “x”", "a b c x"],
    ["\ue000sabc \ue006path", "sabc path"],
    ["x\ud800y", "x y"],
    ["", ""],
  ];
  for (const [text, words] of SAME) {
    test(`of ${JSON.stringify(text)} are ${JSON.stringify(words)}`, () => {
      assert.equal(wordsOf(text).join(" "), words);
    });
  }

  test("that are very long are known by their beginning", () => {
    assert.deepEqual(wordsOf("x".repeat(1_000)), ["x".repeat(64)]);
    assert.deepEqual(wordsOf("é".repeat(1_000)), ["e".repeat(64)]);
  });

  test("are the same with their places as without, and found again in what they make", () => {
    checkProperty(
      import.meta.filename,
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const words = wordsOf(text);
        assert.deepEqual(
          [...spansOf(text)].map(({ word }) => word),
          words,
        );
        assert.deepEqual(wordsOf(words.join(" ")), words);
      }),
      { numRuns: 2_000 },
    );
  });

  test("hold nothing that a database could read as its own", () => {
    checkProperty(
      import.meta.filename,
      fc.property(fc.string({ unit: "binary", maxLength: 100 }), (text) => {
        for (const word of wordsOf(text))
          assert.match(word, /^[0-9a-z\u0080-\ud7ff\uf900-\uffff\u{10000}-\u{effff}]+$/u);
      }),
      { numRuns: 2_000 },
    );
  });
});
