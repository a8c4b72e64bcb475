import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseQuery, type SearchQuery, type Term } from "./query.ts";
import { checkProperty } from "../testing/seeds.ts";

const NOW = new Date(2026, 2, 31, 14, 30).getTime();

function read(text: string): SearchQuery {
  const parsed = parseQuery(text, NOW);
  assert.ok(parsed.isOk, parsed.isOk ? "" : parsed.problem);
  return parsed.query;
}

function problem(text: string): string {
  const parsed = parseQuery(text, NOW);
  assert.ok(!parsed.isOk, text);
  return parsed.problem;
}

function said(terms: readonly Term[]): string[] {
  return terms.map(({ words, isPrefix }) => words.join(" ") + (isPrefix ? "*" : ""));
}

describe("a query", () => {
  test("has words, phrases, beginnings and what must not be there", () => {
    const query = read('how does "token refresh" work? migrat* -test -"dry run" -old*');
    assert.deepEqual(said(query.any), ["how", "does", "work", "migrat*"]);
    assert.deepEqual(said(query.all), ["token refresh"]);
    assert.deepEqual(said(query.none), ["test", "dry run", "old*"]);
  });

  test("takes pasted code as words side by side", () => {
    assert.deepEqual(said(read("src/auth.ts:12 std::vector<int> foo_bar(x)").any), [
      "src auth ts 12",
      "std vector int",
      "foo bar x",
    ]);
  });

  test("filters by agent, author, tool and path, also by what it must not be", () => {
    const { filters } = read('x agent:Codex author:you tool:"mcp kinfold" -path:src/x.ts');
    assert.deepEqual(
      filters.map(({ field, value, term, isNot }) => [field, value, said([term])[0], isNot]),
      [
        ["agent", "codex", "codex", false],
        ["author", "person", "you", false],
        ["tool", "mcp kinfold", "mcp kinfold", false],
        ["path", "src/x.ts", "src x ts", true],
      ],
    );
  });

  test("may consist of filters, times or a tree alone", () => {
    assert.equal(read("tool:bash").filters.length, 1);
    assert.equal(read("tree:release").tree, "release");
    assert.equal(read("after:1h -agent:codex").filters.length, 1);
    assert.equal(read("x sort:newest").sort, "newest");
  });

  const TIMES: readonly (readonly [text: string, at: Date])[] = [
    ["today", new Date(2026, 2, 31)],
    ["yesterday", new Date(2026, 2, 30)],
    ["2d", new Date(NOW - 2 * 86_400_000)],
    ["90m", new Date(2026, 2, 31, 13, 0)],
    ["3w", new Date(NOW - 21 * 86_400_000)],
    ["12h", new Date(2026, 2, 31, 2, 30)],
    ["2026-03-01", new Date(2026, 2, 1)],
    ["2026-03", new Date(2026, 2, 1)],
    ["2026", new Date(2026, 0, 1)],
    ["2026-03-01T09:15", new Date(2026, 2, 1, 9, 15)],
    ["2026-03-01T09:15:00Z", new Date(Date.UTC(2026, 2, 1, 9, 15))],
    ["2026-03-01T09:15:00+02:00", new Date(Date.UTC(2026, 2, 1, 7, 15))],
  ];
  for (const [text, at] of TIMES) {
    test(`reads after:${text}`, () => {
      assert.equal(new Date(read(`x after:${text}`).after ?? 0).toISOString(), at.toISOString());
    });
  }

  const REFUSED: readonly (readonly [text: string, says: RegExp])[] = [
    ["", /no word to search for.*Write words/],
    ["   \u0000 ", /no word/],
    ['()[]{}^*:~+-"', /no word/],
    ["AND OR", /no word/],
    ["-only -these", /only what not to find/],
    ["-agent:codex", /only what not to find/],
    ["x agent:", /agent: needs a value.*agent:codex/],
    ["x author:bob", /no author; there are person, agent, tool/],
    ["x before:someday", /"someday" is no date for before:\. Write 2026-03-31/],
    ["x after:2026-02-31", /no date/],
    ["x after:2026-13-01", /no date/],
    ["x after:999999999w", /no date/],
    ["x -after:2d", /write before: instead/],
    ["x after:1d before:2d", /must name a later time/],
    ["x -tree:a", /only be where to look/],
    ["x sort:best", /sort:newest or sort:relevance/],
    ["a*", /too short/],
    ["x path:///", /names nothing/],
    [Array.from({ length: 80 }, (_, n) => `w${n}`).join(" "), /80 words.*at most 64/],
  ];
  for (const [text, says] of REFUSED) {
    test(`${JSON.stringify(text.slice(0, 30))} is refused with what is allowed`, () => {
      assert.match(problem(text), says);
    });
  }

  test("with an unfinished quote, lone signs or another language's syntax is taken for its words", () => {
    assert.deepEqual(said(read('say "never ending').all), ["never ending"]);
    assert.deepEqual(said(read("- x -- * y").any), ["x", "y"]);
    assert.deepEqual(said(read("NEAR(a b, 5)").any), ["near a", "b", "5"]);
    assert.deepEqual(said(read("words: x AND y OR z NOT w").any), ["words", "x", "y", "z"]);
    assert.deepEqual(said(read("x'; DROP TABLE entries; --").any), ["x", "drop", "table", "entries"]);
  });

  test("of ten thousand parentheses is read at once", () => {
    assert.match(problem("(".repeat(10_000)), /no word/);
    assert.match(problem("( ".repeat(10_000)), /no word/);
    assert.deepEqual(said(read(`${"(".repeat(10_000)}x${")".repeat(10_000)}`).any), ["x"]);
    assert.match(problem("-".repeat(10_000)), /no word/);
    assert.match(problem('"'.repeat(10_000)), /no word/);
  });

  test("is always read or refused in a sentence, and gives only words", () => {
    const signs = "\"'()*-:^+~&|!\\<>@#;,. aAND\u0000日é“»"
      .split("")
      .concat("agent:", "before:", "tree:", " -", '"x');
    const texts = fc.oneof(
      fc.string({ unit: "binary", maxLength: 120 }),
      fc.array(fc.constantFrom(...signs), { maxLength: 40 }).map((parts) => parts.join("")),
    );
    checkProperty(
      import.meta.filename,
      fc.property(texts, (text) => {
        const parsed = parseQuery(text, NOW);
        if (!parsed.isOk) return assert.match(parsed.problem, /\S.*\.$/s);
        const { any, all, none, filters } = parsed.query;
        const terms = [...any, ...all, ...none, ...filters.map(({ term }) => term)];
        for (const { words } of terms) {
          assert.ok(words.length > 0);
          for (const word of words) assert.match(word, /^[\p{L}\p{N}][\p{L}\p{N}\p{M}]*$/u);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
