import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import type { EntryBody } from "../../contract/index.ts";
import { parseQuery } from "../../search/query.ts";
import type { EntryFound, EntrySearch, SessionRecord, Store } from "../port/store.ts";
import { aChild, aSession } from "../testing/sample.ts";
import { checkProperty } from "../../testing/seeds.ts";

const NOW = 1_790_000_000_000;
const DAY = 86_400_000;

/** An entry that the suite writes. `in` names its session: `b` is a child of `a`; `d` is in another scope. */
interface Written {
  readonly in: "a" | "b" | "c" | "d";
  readonly body: Partial<EntryBody>;
  readonly author?: "person" | "agent" | "tool" | "daemon";
  readonly kind?: "text" | "toolCall" | "toolResult" | "plan";
  readonly daysAgo?: number;
}

const WRITTEN: readonly Written[] = [
  {
    in: "a",
    body: { text: "Please fix the token refresh in the login service." },
    author: "person",
    daysAgo: 9,
  },
  { in: "a", body: { text: "The token is refreshed too late; the session expires first." }, daysAgo: 8 },
  { in: "a", body: { text: "Der Schlüssel für die Straße heißt CAFÉ, naïve façade." }, daysAgo: 8 },
  { in: "b", body: { text: "認証トークンの更新に失敗しました。" }, daysAgo: 7 },
  { in: "b", body: { text: "로그인 데이터를 다시 읽었습니다" }, daysAgo: 7 },
  { in: "b", body: { text: "rename session_id to parent-session.id in kinfold.config.yaml" }, daysAgo: 6 },
  {
    in: "b",
    body: { text: "mail anna.smith+test@example.com about https://example.com/a?b=c#d" },
    daysAgo: 6,
  },
  {
    in: "b",
    body: { text: "Run the tests", tool: "Bash", command: "npm test -- --watch=false", paths: [] },
    author: "tool",
    kind: "toolCall",
    daysAgo: 5,
  },
  {
    in: "a",
    body: { text: "Edited two files", tool: "Edit", paths: ["src/server/http.ts", "src/auth/login.test.ts"] },
    author: "tool",
    kind: "toolResult",
    daysAgo: 4,
  },
  { in: "c", body: { text: "the quick brown fox jumps over the lazy dog" }, daysAgo: 3 },
  { in: "c", body: { text: "the lazy fox and the quick brown dog" }, daysAgo: 2 },
  {
    in: "c",
    body: { text: 'std::vector<int> v; // NEAR(a b) OR NOT "x" AND col:y ^z 1.5e-10 v2.0.1' },
    daysAgo: 2,
  },
  { in: "d", body: { text: "a secret token of another scope: xylophone" }, daysAgo: 1 },
  {
    in: "c",
    body: { text: "", steps: [{ title: "Migrate the database", status: "pending" }] },
    kind: "plan",
  },
  { in: "a", body: { text: "nothing here but ９９ full-width and ﬁne ligatures" }, author: "daemon" },
];

/**
 * The queries that both stores must answer, with the entries each must find (session and index), in any
 * order.
 */
export const QUERIES: readonly (readonly [query: string, finds: readonly string[]])[] = [
  ["xylophone", ["d0"]],
  ["token", ["a0", "a1", "d0"]],
  ["TOKEN refresh", ["a0", "a1", "d0"]],
  ['"token refresh"', ["a0"]],
  ['"token refreshed"', []],
  ["how is the token refreshed?", ["a0", "a1", "b4", "d0", "c0", "c1", "c3"]],
  ["refresh*", ["a0", "a1"]],
  ["token -expires", ["a0", "d0"]],
  ['token -"token refresh"', ["a1", "d0"]],
  ['"lazy dog" fox', ["c0"]],
  ['"brown fox"', ["c0"]],
  ['"brown dog"', ["c1"]],
  ["schlussel", ["a2"]],
  ["SCHLÜSSEL", ["a2"]],
  ["strasse", ["a2"]],
  ["cafe facade", ["a2"]],
  ["トークン", ["b0"]],
  ["認証", ["b0"]],
  ["データ", []],
  ["데이터", ["b1"]],
  ["session_id", ["b2"]],
  ["session.id", ["b2"]],
  ["parent-session.id", ["b2"]],
  ["config.yaml", ["b2"]],
  ["kinfold.config.yaml", ["b2"]],
  ["anna.smith+test@example.com", ["b3"]],
  ["example.com", ["b3"]],
  ["https://example.com/a?b=c", ["b3"]],
  ["tool:bash", ["b4"]],
  ["tool:Bash npm", ["b4"]],
  ["--watch=false", ["b4"]],
  ["path:src/server", ["a3"]],
  ["path:login.test.ts", ["a3"]],
  ["path:server/login", []],
  ["path:http.ts/src", []],
  ["path:logi*", ["a3"]],
  ["http.ts", ["a3"]],
  ["author:person", ["a0"]],
  ["author:you login", ["a0"]],
  ["token author:agent", ["a1", "d0"]],
  ["-author:agent token", ["a0"]],
  ["the agent:codex", ["c0", "c1", "c3"]],
  ["token -agent:claude", ["d0"]],
  ["std::vector<int>", ["c2"]],
  ["1.5e-10", ["c2"]],
  ["v2.0.1", ["c2"]],
  ["NEAR(a b)", ["c2", "b3"]],
  ["col:y", ["c2"]],
  ["migrate database", ["c3"]],
  ["99 fine", ["a4"]],
  ["token after:2d", ["d0"]],
  ["token before:2d", ["a0", "a1"]],
  ["fox after:4d before:2d", ["c0"]],
  ["nonesuch", []],
  ["tool:nonesuch token", []],
  ['unfinished "token refresh', ["a0"]],
  ["token\u0000refresh", ["a0", "a1", "d0"]],
  ["'; DROP TABLE entries; --", []],
  ['" OR 1=1 --', []],
  ["token' & !x", ["a0", "a1", "c2", "d0"]],
  ["\\token\\", ["a0", "a1", "d0"]],
];

export interface Planted {
  readonly sessions: Readonly<Record<"a" | "b" | "c" | "d", SessionRecord>>;
  find(query: string, more?: Partial<EntrySearch>): Promise<EntryFound>;
  /** Formats hits as session and index, such as `a0`. */
  names(found: EntryFound): string[];
}

export async function plant(store: Store): Promise<Planted> {
  const a = aSession({ id: idOf(1), name: "a", agent: "claude", scope: "home" });
  const b = aChild(a, { id: idOf(2), name: "b", agent: "claude", scope: "home" });
  const c = aSession({ id: idOf(3), name: "c", agent: "Codex", scope: "home" });
  const d = aSession({ id: idOf(4), name: "d", agent: "codex", scope: "other-Scope" });
  const sessions = { a, b, c, d };
  for (const session of [a, b, c, d]) await store.write(session.rootId, (tx) => tx.sessions.add(session));
  for (const { in: name, body, author = "agent", kind = "text", daysAgo = 0 } of WRITTEN) {
    const session = sessions[name];
    const entry = { turnId: null, author, kind, isSubagent: false, at: NOW - daysAgo * DAY };
    await store.write(session.rootId, (tx) =>
      tx.entries.append(session.id, [{ ...entry, body: { text: "", ...body } }]),
    );
  }
  const letters = new Map(Object.entries(sessions).map(([name, { id }]) => [id, name]));
  return {
    sessions,
    find: (query, more = {}) => store.search({ ...asked(query), ...more }),
    names: ({ hits }) => hits.map(({ sessionId, index }) => `${letters.get(sessionId)}${index}`),
  };
}

function idOf(n: number): string {
  return `0199c0de-0000-7000-8000-00000000000${n}`;
}

export function asked(text: string): EntrySearch {
  const parsed = parseQuery(text, NOW);
  assert.ok(parsed.isOk, parsed.isOk ? "" : `${text}: ${parsed.problem}`);
  return {
    query: parsed.query,
    visible: "all",
    sessionId: null,
    rootId: null,
    sort: "relevance",
    limit: 50,
    now: NOW,
    from: null,
  };
}

export function searchRules(fresh: () => Promise<Store>): void {
  it("a search finds what the query set says", async () => {
    const { find, names } = await plant(await fresh());
    const wrong: string[] = [];
    for (const [query, finds] of QUERIES) {
      const found = names(await find(query)).toSorted();
      if (found.join() !== finds.toSorted().join()) wrong.push(`${query}: ${found} instead of ${finds}`);
    }
    assert.deepEqual(wrong, []);
  });

  it("what holds more of the words, side by side or newer comes first", async () => {
    const { find, names } = await plant(await fresh());
    assert.equal(names(await find("token refresh login"))[0], "a0");
    assert.equal(names(await find("quick brown fox"))[0], "c0");
    assert.equal(names(await find("quick brown dog"))[0], "c1");
    assert.deepEqual(names(await find("token", { sort: "newest" })), ["d0", "a1", "a0"]);
    assert.deepEqual(names(await find("sort:newest author:tool")), ["a3", "b4"]);
  });

  it("a search stays in the session, the tree and the scopes it was given", async () => {
    const { find, names, sessions } = await plant(await fresh());
    const { a, b, c } = sessions;
    assert.deepEqual(names(await find("the", { sessionId: a.id })).toSorted(), ["a0", "a1"]);
    assert.deepEqual(names(await find("example", { rootId: a.id })), ["b3"]);
    assert.deepEqual(names(await find("the", { sessionId: b.id })), ["b4"]);
    assert.deepEqual(names(await find("token", { visible: ["other-Scope"] })), ["d0"]);
    assert.deepEqual(names(await find("token", { visible: ["other-scope"] })), []);
    assert.deepEqual(names(await find("token", { visible: [] })), []);
    assert.deepEqual(names(await find("token", { visible: ["home", "other-Scope"] })).length, 3);
    assert.deepEqual(names(await find("xylophone", { visible: ["home"], sessionId: c.id })), []);
  });

  it("words of another scope are not even hinted at", async () => {
    const { find } = await plant(await fresh());
    const near = async (visible: string[]) => (await find("xylophon", { visible })).near;
    assert.deepEqual(await near(["other-Scope"]), [{ word: "xylophon", instead: "xylophone" }]);
    assert.deepEqual(await near(["home"]), []);
  });

  it("a hit names its session, author and time, and marks the words that were searched for", async () => {
    const { find, sessions } = await plant(await fresh());
    const { hits, total, isWhole } = await find("STRASSE");
    assert.equal(total, 1);
    assert.equal(isWhole, true);
    const [hit] = hits;
    assert.equal(hit?.sessionId, sessions.a.id);
    assert.equal(hit?.agent, "claude");
    assert.equal(hit?.author, "agent");
    assert.equal(hit?.at, NOW - 8 * DAY);
    const { text, marks } = hit!.snippet;
    assert.deepEqual(
      marks.map(([from, to]) => text.slice(from, to)),
      ["Straße"],
    );
  });

  it("pages of a search hold every hit once, whatever is written between them", async () => {
    const store = await fresh();
    const { find, sessions } = await plant(store);
    const { a } = sessions;
    const say = (text: string, at: number) =>
      store.write(a.rootId, (tx) =>
        tx.entries.append(a.id, [
          { turnId: null, author: "agent", kind: "text", isSubagent: false, at, body: { text } },
        ]),
      );
    for (let i = 0; i < 900; i++) await say(`heron number ${i} ${i < 3 ? "rarely" : ""}`, NOW - i * 1_000);
    for (const [query, sort] of [
      ["heron", "relevance"],
      ["heron", "newest"],
      ["heron number", "newest"],
    ] as const) {
      const seen: number[] = [];
      let from: EntrySearch["from"] = null;
      do {
        const { hits, next } = await find(query, { sort, limit: 40, from });
        seen.push(...hits.map(({ index }) => index));
        await say("another heron", NOW + 5_000);
        from = next;
      } while (from !== null);
      assert.equal(new Set(seen).size, seen.length, `${query} by ${sort}`);
      assert.ok(seen.length >= 900, `${query} by ${sort}: ${seen.length}`);
      if (sort === "newest")
        assert.deepEqual(
          seen.slice(-10),
          seen.slice(-10).toSorted((a, b) => a - b),
        );
    }
    const best = await find("heron rarely");
    assert.deepEqual(
      best.hits
        .slice(0, 3)
        .map(({ index }) => index)
        .toSorted(),
      [5, 6, 7],
    );
  });

  it("what holds all the words, or the two rarest, is found however many newer ones hold one of them", async () => {
    const store = await fresh();
    const { find, sessions } = await plant(store);
    const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false } as const;
    const say = (texts: readonly string[], at: number) =>
      store.write(sessions.a.rootId, (tx) =>
        tx.entries.append(
          sessions.a.id,
          texts.map((text, i) => ({ ...entry, at: at - i * 1_000, body: { text } })),
        ),
      );
    await say(["the heron and stork problem is the egret", "a heron beside a stork"], NOW - DAY);
    const newer = Array.from({ length: 300 }, () => ["one heron", "one stork", "an egret", "one more egret"]);
    await say(newer.flat(), NOW - 60_000);
    for (const query of ["heron stork", "stork heron -flamingo", "heron stork egret", "egret stork heron"]) {
      const [first, second] = (await find(query)).hits;
      assert.match(`${first?.snippet.text}`, /problem is the egret|heron beside a stork/, query);
      assert.match(`${second?.snippet.text}`, /problem is the egret|heron beside a stork/, query);
    }
  });

  it("a filter of any length finds nothing or something, and is no error", async () => {
    const { find } = await plant(await fresh());
    for (const value of [`${"!".repeat(800)}a`, "é".repeat(900), "a/".repeat(400), "x".repeat(900)]) {
      for (const field of ["agent", "tool", "path"]) {
        assert.deepEqual((await find(`${field}:${value}`)).hits, [], `${field}:${value.slice(0, 9)}`);
      }
    }
  });

  it("phrases and paths are found in long entries too, and not where they do not stand", async () => {
    const store = await fresh();
    const { sessions, find } = await plant(store);
    const lines = Array.from({ length: 300 }, (_, i) => `[info] request ${i} done`);
    const path = (i: number) => `packages/app${i}/src/components/deep/folder/of/things/src/file${i}.test.ts`;
    const bodies: EntryBody[] = [
      { text: [...lines, "[error] request failed needle"].join("\n") },
      { text: [...lines, "[error] failed the request"].join("\n") },
      { text: "word ".repeat(20_000), paths: Array.from({ length: 200 }, (_, i) => path(i)) },
    ];
    const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: NOW } as const;
    const [first = 0] = await store.write(sessions.a.rootId, async (tx) =>
      (
        await tx.entries.append(
          sessions.a.id,
          bodies.map((body) => ({ ...entry, body })),
        )
      ).map(({ index }) => index),
    );
    for (const [query, finds] of [
      ['"request failed"', [0]],
      ["request.fail*", [0]],
      ['"the request"', [1]],
      ['"info request 299"', [0, 1]],
      ['needle -"request failed"', []],
      ['"failed the" -"request failed"', [1]],
      ["path:app199/src", [2]],
      ["path:app150/src/components", [2]],
      ["path:src/file199.test.ts", [2]],
      ["path:src/app3", []],
      ['"word word"', [2]],
    ] as const) {
      const { hits } = await find(query, { sessionId: sessions.a.id });
      const found = hits.map(({ index }) => index - first).toSorted();
      assert.deepEqual(found, finds, query);
    }
  });

  it("an entry can be searched for from its commit on, and one that was rolled back never", async () => {
    const store = await fresh();
    const { find, sessions } = await plant(store);
    const { a } = sessions;
    const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: NOW } as const;
    const rejected = store.write(a.rootId, async (tx) => {
      await tx.entries.append(a.id, [{ ...entry, body: { text: "albatross" } }]);
      throw new Error("no");
    });
    await assert.rejects(rejected, { message: "no" });
    assert.equal((await find("albatross")).hits.length, 0);
    await store.write(a.rootId, (tx) => tx.entries.append(a.id, [{ ...entry, body: { text: "albatross" } }]));
    assert.equal((await find("albatross")).hits.length, 1);
  });

  it("many entries of the same moment are all found, and pages go through all of them", async () => {
    const store = await fresh();
    const { find, sessions } = await plant(store);
    const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: NOW - DAY } as const;
    for (let batch = 0; batch < 10; batch++) {
      await store.write(sessions.a.rootId, (tx) =>
        tx.entries.append(
          sessions.a.id,
          Array.from({ length: 500 }, (_, i) => ({
            ...entry,
            body: { text: `flock ${batch * 500 + i}end` },
          })),
        ),
      );
    }
    assert.equal((await find("flock")).total, null);
    for (const sort of ["newest", "relevance"] as const) {
      const seen: number[] = [];
      for (let from: EntrySearch["from"] = null, isMore = true; isMore;) {
        const { hits, next } = await find("flock", { sort, limit: 200, from });
        seen.push(...hits.map(({ index }) => index));
        from = next;
        isMore = next !== null;
      }
      assert.deepEqual([new Set(seen).size, seen.length], [5_000, 5_000], sort);
    }
    for (const i of [0, 2_500, 4_999]) assert.equal((await find(`${i}end`)).hits.length, 1, String(i));
  });

  it("no text is an error: it is found by its own words or refused", async () => {
    const store = await fresh();
    const { sessions } = await plant(store);
    const { a } = sessions;
    const texts = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 60 }),
      fc.string({ unit: "binary", maxLength: 60 }),
      fc
        .array(fc.constantFrom(..."\"'()*-:^+~&|!\\<>@#$%{}[];,. aNEARORAND\u0000日é\ue000\ud800".split("")))
        .map((signs) => signs.join("")),
    );
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(texts, async (text) => {
        await store.write(a.rootId, (tx) =>
          tx.entries.append(a.id, [
            { turnId: null, author: "agent", kind: "text", isSubagent: false, at: NOW, body: { text } },
          ]),
        );
        const parsed = parseQuery(text, NOW);
        if (!parsed.isOk) return;
        await store.search({ ...asked("x"), query: parsed.query });
        const phrase = parseQuery(`"${text.replaceAll(/["“”„«»]/g, " ")}"`, NOW);
        if (!phrase.isOk) return;
        const { hits } = await store.search({ ...asked("x"), query: phrase.query, sort: "newest" });
        assert.ok(hits.length > 0, JSON.stringify(text));
      }),
      { numRuns: 150 },
    );
  });
}
