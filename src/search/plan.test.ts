import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { fitsWords, indexedWords } from "./expression.ts";
import { DRAFT, type EntrySearch, findEntries, type SearchRow, type SearchSource } from "./plan.ts";
import { parseQuery } from "./query.ts";
import { checkProperty } from "../testing/seeds.ts";

const NOW = 1_790_000_000_000;

interface Said {
  readonly text: string;
  readonly secondsAgo: number;
  readonly isDraft?: boolean;
}

/** An in-memory source that behaves like the databases, without an index. */
function sourceOf(said: readonly Said[]): SearchSource<SearchRow> & { lists: number } {
  const all = said.map(({ text, secondsAgo, isDraft }, index) => {
    const at = NOW - secondsAgo * 1_000;
    const of = { rootId: "r", sessionId: "s", author: "agent", kind: "text", body: { text }, at } as const;
    const number = String(index).padStart(6, "0");
    const position = isDraft === true ? `${DRAFT}${number}` : `${String(at).padStart(15, "0")}/${number}`;
    return { row: { position, entry: of }, words: indexedWords(of, { agent: "a", scope: "s" }) };
  });
  const isDraft = ({ row }: { row: SearchRow }): boolean => row.position.startsWith(DRAFT);
  const entries = all
    .filter((one) => !isDraft(one))
    .sort((a, b) => (a.row.position < b.row.position ? 1 : -1));
  return {
    lists: 0,
    async list(expression, { from, to, past }, limit) {
      this.lists += 1;
      const found = entries.filter(({ row: { position, entry }, words }) => {
        const isInTime = entry.at >= from && entry.at < to && (past === null || position < past);
        return isInTime && fitsWords(words, expression);
      });
      return found.slice(0, limit).map(({ row: { position, entry } }) => ({ position, at: entry.at }));
    },
    rows: async (positions) =>
      entries.map(({ row }) => row).filter(({ position }) => positions.includes(position)),
    drafts: all.filter(isDraft),
    checkTime: async () => undefined,
  };
}

function asked(text: string, more: Partial<EntrySearch> = {}): EntrySearch {
  const parsed = parseQuery(text, NOW);
  assert.ok(parsed.isOk);
  const anywhere = { visible: "all", sessionId: null, rootId: null } as const;
  return { query: parsed.query, ...anywhere, sort: "relevance", limit: 10, now: NOW, from: null, ...more };
}

async function pages(source: SearchSource<SearchRow>, search: EntrySearch): Promise<string[]> {
  const texts: string[] = [];
  for (let { from } = search; ;) {
    const { rows, next } = await findEntries(source, { ...search, from });
    texts.push(...rows.map(({ entry }) => entry.body.text));
    if (next === null) return texts;
    from = next;
  }
}

describe("the plan of a search", () => {
  test("pages by time show every match once, also drafts", async () => {
    const said = fc.array(
      fc.record({
        text: fc.constantFrom("heron", "stork", "heron stork", "egret"),
        secondsAgo: fc.nat(300),
        isDraft: fc.boolean(),
      }),
      { maxLength: 900, size: "max" },
    );
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(said, fc.integer({ min: 1, max: 50 }), async (all, limit) => {
        const numbered = all.map((one, n) => ({ ...one, text: `${one.text} ${n}` }));
        const source = sourceOf(numbered);
        const found = await pages(source, asked("heron stork", { sort: "newest", limit }));
        const matching = numbered.filter(({ text }) => /heron|stork/.test(text));
        assert.equal(new Set(found).size, found.length);
        assert.deepEqual(found.toSorted(), matching.map(({ text }) => text).toSorted());
      }),
      { numRuns: 30 },
    );
  });

  test("an old entry with all words is found behind any number of newer ones with one of them", async () => {
    const words = ["heron", "stork", "egret"];
    const newer = Array.from({ length: 900 }, (_, n) => ({ text: `one ${words[n % 3]}`, secondsAgo: n }));
    const source = sourceOf([...newer, { text: "heron and stork and egret", secondsAgo: 9_000 }]);
    const { rows, total } = await findEntries(source, asked("heron stork egret"));
    assert.equal(rows[0]?.entry.body.text, "heron and stork and egret");
    assert.equal(total, null);
    assert.equal(source.lists, 4, "one list for each word, and one for the two rarest");
  });

  test("all words are asked for together only where the two rarest have too many entries", async () => {
    const newer = Array.from({ length: 300 }, (_, n) => ({ text: "one egret", secondsAgo: 2 * n }));
    const pairs = Array.from({ length: 300 }, (_, n) => ({ text: "heron stork", secondsAgo: 2 * n + 1 }));
    const source = sourceOf([...newer, ...pairs, { text: "heron stork egret", secondsAgo: 9_000 }]);
    const { rows } = await findEntries(source, asked("heron stork egret"));
    assert.equal(rows[0]?.entry.body.text, "heron stork egret");
    assert.equal(source.lists, 5);
  });

  test("a word with a whole list is not asked for again together with others", async () => {
    const newer = Array.from({ length: 200 }, (_, n) => ({ text: "one heron", secondsAgo: n }));
    const source = sourceOf([...newer, { text: "a heron and a stork", secondsAgo: 9_000 }]);
    const { rows } = await findEntries(source, asked("heron stork"));
    assert.equal(rows[0]?.entry.body.text, "a heron and a stork");
    assert.equal(source.lists, 2);
  });

  test("several phrases are required together and need one list", async () => {
    const source = sourceOf([
      { text: "the grey heron and the white stork", secondsAgo: 2 },
      { text: "the grey heron", secondsAgo: 1 },
    ]);
    const { rows, total } = await findEntries(source, asked('"grey heron" "white stork"'));
    assert.deepEqual([rows.length, total, source.lists], [1, 1, 1]);
  });
});
