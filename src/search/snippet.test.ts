import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { findTerms } from "./find.ts";
import { nearestWords } from "./near.ts";
import { scoreOf, weightsOf } from "./rank.ts";
import { snippetOf } from "./snippet.ts";
import { searchedText, wordsOf } from "./words.ts";
import { checkProperty } from "../testing/seeds.ts";

const term = (text: string, isPrefix = false) => ({ words: wordsOf(text), isPrefix });

function marked(text: string, ...terms: string[]): string[] {
  const snippet = snippetOf(
    text,
    terms.map((each) => term(each)),
  );
  return snippet.marks.map(([from, to]) => snippet.text.slice(from, to));
}

describe("a term is found", () => {
  const places = (text: string, words: string, isPrefix = false): string[] =>
    findTerms(text, [term(words, isPrefix)]).map(({ start, end }) => text.slice(start, end));

  test("as a whole word, side by side, or by its beginning", () => {
    assert.deepEqual(places("token tokens a-token_x TOKEN", "token"), ["token", "token", "TOKEN"]);
    assert.deepEqual(places("token, refresh; token x refresh", "token refresh"), ["token, refresh"]);
    assert.deepEqual(places("migrate migration emigrate", "migrat", true), ["migrate", "migration"]);
    assert.deepEqual(places("die Straße", "strasse"), ["Straße"]);
    assert.deepEqual(places("認証トークン", "トークン"), ["トークン"]);
  });

  test("where the index finds it, in a text of any kind", () => {
    const words = fc.constantFrom("token", "to", "Tok", "x", "é", "日本", "…", "_", "-", " ", "9");
    const texts = fc.array(words, { maxLength: 30 }).map((parts) => parts.join(""));
    checkProperty(
      import.meta.filename,
      fc.property(texts, texts, fc.boolean(), (text, of, isPrefix) => {
        const wanted = wordsOf(of);
        if (wanted.length === 0) return;
        const there = wordsOf(text);
        const last = wanted.length - 1;
        const isThere = there.some((_, from) =>
          wanted.every((word, n) => {
            const found = there[from + n] ?? "";
            return n === last && isPrefix ? found.startsWith(word) : found === word;
          }),
        );
        assert.equal(
          findTerms(text, [{ words: wanted, isPrefix }]).length > 0,
          isThere,
          JSON.stringify([text, of]),
        );
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("a snippet", () => {
  test("shows where most of the terms stand, on one line", () => {
    const text = `${"alpha filler ".repeat(40)}\n\n\tbeta and gamma\nstand here ${"more ".repeat(100)}`;
    const { text: line, marks } = snippetOf(text, [term("alpha"), term("beta"), term("gamma")]);
    assert.match(line, /beta and gamma stand here/);
    assert.doesNotMatch(line, /[\n\t]/);
    assert.ok(line.startsWith("…") && line.endsWith("…") && line.length <= 210, line);
    assert.ok(marks.some(([from, to]) => line.slice(from, to) === "gamma"));
  });

  test("marks each place once, whatever overlaps", () => {
    assert.deepEqual(marked("the token refresh token", "token", "token refresh"), ["token refresh", "token"]);
    assert.deepEqual(marked("nothing of it", "absent"), []);
  });

  test("of any text has marks inside it and no half character", () => {
    checkProperty(
      import.meta.filename,
      fc.property(fc.string({ unit: "binary", maxLength: 600 }), fc.nat(20), (text, at) => {
        const [word] = wordsOf(text).slice(at);
        const snippet = snippetOf(text, word === undefined ? [] : [{ words: [word], isPrefix: false }]);
        for (const [from, to] of snippet.marks) {
          assert.ok(from >= 0 && from < to && to <= snippet.text.length);
          assert.ok(wordsOf(snippet.text.slice(from, to)).includes(word ?? ""));
        }
        if (word !== undefined) assert.ok(snippet.marks.length > 0);
        if (text.isWellFormed()) assert.ok(snippet.text.isWellFormed());
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("what is searched of an entry", () => {
  test("is its text, its tool, its command, its paths and its plan, each once", () => {
    const body = { text: "ran npm test", tool: "Bash", command: "npm test", paths: ["src/a.ts"] };
    assert.equal(searchedText(body), "Bash\nsrc/a.ts\nran npm test");
    assert.equal(searchedText({ text: "", steps: [{ title: "Migrate", status: "pending" }] }), "Migrate\n");
  });
});

describe("rank", () => {
  const score = (text: string, terms: string[], weights: number[], ageMs = 0): number =>
    scoreOf(
      {
        text,
        found: findTerms(
          text,
          terms.map((each) => term(each)),
        ),
        ageMs,
        has: [],
      },
      weights,
    );

  test("is higher for rarer words, more of them, side by side, in less text, and newer", () => {
    assert.ok(score("rare", ["rare", "common"], [5, 0.5]) > score("common", ["rare", "common"], [5, 0.5]));
    assert.ok(score("a b", ["a", "b"], [2, 2]) > score("a x", ["a", "b"], [2, 2]));
    assert.ok(score("a b x", ["a", "b"], [2, 2]) > score("a x b", ["a", "b"], [2, 2]));
    assert.ok(score("a", ["a"], [2]) > score(`a ${"x ".repeat(500)}`, ["a"], [2]));
    assert.ok(score("a", ["a"], [2]) > score("a", ["a"], [2], 90 * 86_400_000));
  });

  test("weighs a rare word more than a common one, also where both lists were cut", () => {
    const list = (name: string, apartMs: number, isCut: boolean, count = 80) => ({
      found: Array.from({ length: count }, (_, n) => ({ position: `${name}${n}`, at: 1e9 - n * apartMs })),
      isCut,
      terms: [],
    });
    const [common, seldom, rare] = weightsOf([
      list("a", 1, true),
      list("b", 1_000, true),
      list("c", 1_000, false, 2),
    ]);
    assert.ok(common! < seldom! && seldom! < rare!, `${common} ${seldom} ${rare}`);
  });
});

describe("words that are near", () => {
  test("differ by a slip or two, and never from a word that is known", () => {
    const known = new Set(["token", "refresh", "tests", "migration"]);
    assert.deepEqual(nearestWords(["tokne", "refrsh", "tests", "zebra", "ab"], known), [
      { word: "tokne", instead: "token" },
      { word: "refrsh", instead: "refresh" },
    ]);
    assert.deepEqual(nearestWords(["migartoin"], known), [{ word: "migartoin", instead: "migration" }]);
  });
});
