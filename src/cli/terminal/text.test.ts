import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { age, ago, clip, columnsOf, harmless, cleanLine, padTo, usd } from "./text.ts";
import { parseDuration, parseInteger } from "../value.ts";

describe("numbers as a person reads them", () => {
  it("ages have one", () => {
    assert.deepEqual([0, 4_200, 720_000, 7_300_000, 300_000_000].map(age), [
      "now",
      "4 s",
      "12 min",
      "2 h",
      "3 d",
    ]);
    assert.equal(ago(0), "just now");
  });
  it("a clock that went backwards gives no negative age", () => {
    assert.equal(age(-5_000), "now");
  });
  it("money is short", () => {
    assert.deepEqual([usd(null), usd(0), usd(0.001), usd(2.1)], ["-", "-", "<$0.01", "$2.10"]);
  });
});

describe("text that another program wrote", () => {
  it("loses escape sequences and control characters but keeps its lines", () => {
    assert.equal(harmless("a\u001b[2Jb\u001b]0;title\u0007c\nd\te\u0000\r"), "abc\nd\te\n");
  });
  it("loses what would turn the reading direction around", () => {
    assert.equal(harmless("exe\u202etxt"), "exetxt");
  });
  it("can be put on one line", () => {
    assert.equal(cleanLine("  a\n\n b\t c "), "a b c");
  });
});

describe("columns", () => {
  it("count what a terminal shows: wide characters twice, escape sequences not at all", () => {
    assert.equal(columnsOf("abc"), 3);
    assert.equal(columnsOf("日本"), 4);
    assert.equal(columnsOf("👩‍👩‍👧"), 2);
    assert.equal(columnsOf("\u001b[32m✓\u001b[0m"), 1);
    assert.equal(padTo("日", 4), "日  ");
  });
  it("are never exceeded by clipped text, and a wide character is not cut in two", () => {
    assert.equal(clip("abcdef", 4), "abc…");
    assert.equal(clip("日本語", 4), "日…");
    assert.equal(clip("abc", 3), "abc");
    assert.equal(clip("abc", 0), "");
  });
});

describe("values on the command line", () => {
  it("a time has a unit or is in seconds", () => {
    assert.deepEqual(
      ["90s", "30m", "2h", "5", "1.5m", "250ms"].map(parseDuration),
      [90_000, 1_800_000, 7_200_000, 5_000, 90_000, 250],
    );
    assert.deepEqual(["soon", "-5s", "", "5 weeks"].map(parseDuration), [null, null, null, null]);
  });
  it("a number is whole and not negative", () => {
    assert.deepEqual(["80", "0", "-1", "1.5", "x"].map(parseInteger), [80, 0, null, null, null]);
  });
});
