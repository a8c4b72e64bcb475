import { nearestWords } from "../../search/near.ts";
import { findTerms } from "../../search/find.ts";
import type { Term } from "../../search/query.ts";
import { roughOrder, scoreOf, type TermList, weightOf } from "../../search/rank.ts";
import { snippetOf } from "../../search/snippet.ts";
import { searchedText, wordsOf } from "../../search/words.ts";
import { boundsOf, type Expression } from "./entry-index.ts";
import type { EntryFound, EntryHit, EntrySearch } from "../port/store.ts";
import type { EntryRecord } from "../port/record.ts";
import { draftOf, withDrafts } from "./draft.ts";
import type { Row } from "../sql.ts";

/** What a database must be able to tell. Keys are its own; a list's times are in the order of its keys. */
export interface SearchSource<K> {
  /** Newest first. */
  list(expression: Expression, between: Between, limit: number): Promise<Listed<K>[]>;
  /** How many fit from then on and before the other time, counted up to `max`. */
  count(expression: Expression, between: { from: number; below: number }, max: number): Promise<number>;
  /** How many entries there are, as far as is known. */
  total(): Promise<number>;
  /** In any order; only those of the scopes that the search may see. */
  rows(keys: readonly K[], search: EntrySearch): Promise<{ key: K; row: HitRow }[]>;
  /** For each session the names, or short ids, from its root down to itself. */
  lineages(sessionIds: readonly string[]): Promise<Map<string, string[]>>;
  /** Which of two comes first in a list: negative for the first of them. No two are equal. */
  order(a: Listed<K>, b: Listed<K>): number;
  /** How a place behind this one is named. */
  place(at: Listed<K>): string;
  /** Messages that are still being written, in the scopes that the search may see: rows for `draftOf`. */
  drafts(search: EntrySearch): Promise<Row[]>;
  /** Whether all entries have been indexed. */
  isWhole(): Promise<boolean>;
  /** Lets others go first, where they share this thread; throws when the search has had its time. */
  breathe(): Promise<void>;
}

export interface Listed<K> {
  readonly key: K;
  readonly at: number;
}

export interface Between {
  /** From this time on, and up to but not including. */
  readonly from: number | null;
  readonly to: number | null;
  /** Only what comes after this one. */
  readonly past: string | null;
}

export interface HitRow {
  readonly entry: EntryRecord;
  readonly shortId: string;
  readonly name: string | null;
  readonly agent: string;
  readonly turnIndex: number | null;
}

/** Of older entries in which several terms stand together this many are looked at. */
const TOGETHER_MAX = 64;
/** So many terms: each one more makes the search as long again. */
const TELLING_MAX = 3;
/** What every third entry holds tells little, and is long to walk through. */
const TELLING_SHARE = 0.3;
/** Of each term the newest this many are looked at: a common word says little, and what is new says more. */
const LIST_MAX = 80;
/** Of one term alone there is time for more. */
const LIST_MAX_ALONE = 250;
/** So many are read and ranked by their words at once; pages within them are stable. */
const BLOCK = 24;
/** How far back is counted to tell how common a word is. */
const COUNT_MAX = 1_200;
/** Of each candidate this much is read for its rank. */
const READ_CHARACTERS = 8 * 1024;
/** No more of an entry is in the index, and PostgreSQL's hits are shown by the main thread. */
const SNIPPET_CHARACTERS = 64 * 1024;
/** Where nothing was found, the words of the newest entries are what could have been meant. */
const NEAR_ENTRIES = 200;

/**
 * The same steps over either database. Each term's newest entries come from the index. What they hold and
 * how old they are gives a rough order; the first of it are read and ranked by BM25, here and not in the
 * database, because both must agree and because FTS5 would rank every entry that holds "the".
 */
export async function searchEntries<K>(source: SearchSource<K>, search: EntrySearch): Promise<EntryFound> {
  const open = (await source.drafts(search)).map(draftOf);
  return open.length === 0 ? searchIn(source, search) : searchIn(withDrafts(source, open), search);
}

async function searchIn<K>(source: SearchSource<K>, search: EntrySearch): Promise<EntryFound> {
  const { query, limit } = search;
  const offset = search.from?.offset ?? 0;
  const terms = [...query.any, ...query.all];
  const bounds = boundsOf(search);
  const isNewest = search.sort === "newest" || terms.length === 0;
  const all = await listsOf(source, { search, bounds, terms });
  // By time, and for one term alone, what was cut off comes on later pages.
  const { lists, floor } =
    isNewest || all.length === 1 ? aboveFloor(source, all) : { lists: all, floor: null };
  const shared = isNewest
    ? []
    : await withTogether(source, { lists: await withShares(source, lists, bounds), bounds, search });
  const keys = isNewest ? byTime(source, lists) : roughOrder(shared, search.now);
  const rows = isNewest
    ? await page(source, keys.slice(offset, offset + limit), search)
    : await rankedPage(source, { keys, lists: shared, terms, search });
  const lineages = await source.lineages([...new Set(rows.map(({ entry }) => entry.sessionId))]);
  return {
    hits: rows.map((row) => hitOf(row, terms, lineages.get(row.entry.sessionId) ?? [])),
    next: nextPlace(search, keys.length > offset + limit, floor === null ? null : source.place(floor)),
    total: all.some(({ isCut }) => isCut) ? null : keys.length,
    isWhole: await source.isWhole(),
    near: keys.length === 0 && search.from === null ? await near(source, search, terms) : [],
  };
}

function nextPlace(
  { from, limit, now }: EntrySearch,
  isMore: boolean,
  past: string | null,
): EntryFound["next"] {
  const below = from?.below ?? (second(now) ?? 0) + 1_000;
  if (isMore) return { offset: (from?.offset ?? 0) + limit, below, past: from?.past ?? null };
  return past === null ? null : { offset: 0, below, past };
}

interface Lists<K> {
  readonly found: readonly Listed<K>[];
  readonly isCut: boolean;
}

async function listsOf<K>(
  source: SearchSource<K>,
  { search, bounds, terms }: { search: EntrySearch; bounds: Expression; terms: readonly Term[] },
): Promise<Lists<K>[]> {
  const expressions = terms.length === 0 ? [bounds] : terms.map((term) => withTerms(bounds, [term]));
  const max = expressions.length === 1 ? LIST_MAX_ALONE : LIST_MAX;
  const lists: Lists<K>[] = [];
  for (const expression of expressions) {
    const found = await source.list(expression, windowOf(search), max + 1);
    await source.breathe();
    lists.push({ found: found.slice(0, max), isCut: found.length > max });
  }
  return lists;
}

function withTerms(bounds: Expression, terms: readonly Term[]): Expression {
  return { ...bounds, all: [...terms.map((term) => [term]), ...bounds.all] };
}

function windowOf({ query, from }: EntrySearch): Between {
  const to = least(second(query.before), from?.below ?? null);
  return { from: second(query.after), to, past: from?.past ?? null };
}

/**
 * What holds a term whose list was not cut is there already. Of the others those that hold the two rarest are looked
 * for also among older entries, and where these are many those that hold the next as well: the words of a question
 * stand together where its answer is.
 */
async function withTogether<K>(
  source: SearchSource<K>,
  of: { lists: readonly TermList<K>[]; bounds: Expression; search: EntrySearch },
): Promise<readonly TermList<K>[]> {
  const { lists, bounds, search } = of;
  const { any, all } = search.query;
  const telling = tellingTerms(lists.slice(0, any.length));
  if (telling.length < 2) return lists;
  const also = lists.map(() => new Map<K, number>());
  // Above this time all that holds any of them is in its list.
  const to = Math.floor(Math.max(...telling.map((term) => lists[term]?.found.at(-1)?.at ?? 0))) + 1;
  for (let count = 2; count <= telling.length; count++) {
    const together = telling.slice(0, count);
    const terms = together.map((term) => any[term]!);
    const found = await source.list(withTerms(bounds, terms), { ...windowOf(search), to }, TOGETHER_MAX);
    await source.breathe();
    const held = [...together, ...all.keys().map((term) => any.length + term)];
    for (const { key, at } of found) for (const term of held) also[term]?.set(key, at);
    if (found.length < TOGETHER_MAX) break;
  }
  return lists.map((each, term) => {
    for (const { key } of each.found) also[term]?.delete(key);
    return { ...each, also: [...also[term]!].map(([key, at]) => ({ key, at })) };
  });
}

/** Those whose list was cut, the rarest first: its list goes back farthest. */
function tellingTerms<K>(lists: readonly TermList<K>[]): number[] {
  const rarest = [...lists.entries()]
    .filter(([, { isCut }]) => isCut)
    .toSorted(([, a], [, b]) => (a.found.at(-1)?.at ?? 0) - (b.found.at(-1)?.at ?? 0));
  return rarest
    .filter(([, { share }], at) => at < 2 || (at < TELLING_MAX && share < TELLING_SHARE))
    .map(([term]) => term);
}

/**
 * Without what comes after the place at which a list was cut: there, older ones of other lists would stand as if
 * nothing were between them. The next page goes on there.
 */
function aboveFloor<K>(
  source: SearchSource<K>,
  lists: readonly Lists<K>[],
): { lists: readonly Lists<K>[]; floor: Listed<K> | null } {
  const floors = lists.flatMap(({ found, isCut }) => (isCut ? found.slice(-1) : []));
  const [floor] = floors.sort(source.order);
  if (floor === undefined) return { lists, floor: null };
  const above = lists.map((each) => ({
    ...each,
    found: each.found.filter((one) => source.order(one, floor) <= 0),
  }));
  return { lists: above, floor };
}

function byTime<K>(source: SearchSource<K>, lists: readonly Lists<K>[]): K[] {
  const all = new Map(lists.flatMap(({ found }) => found.map((one) => [one.key, one] as const)));
  return [...all.values()].sort(source.order).map(({ key }) => key);
}

async function withShares<K>(
  source: SearchSource<K>,
  lists: readonly Lists<K>[],
  bounds: Expression,
): Promise<TermList<K>[]> {
  if (lists.length === 1) return lists.map((each) => ({ ...each, share: 0, also: [] }));
  const total = await totalWithin(source, bounds);
  const since = await countsSince(
    source,
    bounds,
    lists.flatMap(({ found, isCut }) => (isCut ? [found.at(-1)?.at ?? 0] : [])),
  );
  return lists.map((each) => {
    const ofAll = Math.min(1, each.found.length / Math.max(1, total));
    if (!each.isCut) return { ...each, share: ofAll, also: [] };
    const counted = since.get(each.found.at(-1)?.at ?? 0) ?? COUNT_MAX;
    const ofCounted = Math.min(1, each.found.length / Math.max(1, counted));
    // Beyond what is counted the truth lies somewhere between the two.
    return { ...each, share: counted < COUNT_MAX ? ofCounted : Math.sqrt(ofCounted * ofAll), also: [] };
  });
}

/** How many entries there are since each of these times. All of them are counted in one go, the newest first. */
async function countsSince<K>(
  source: SearchSource<K>,
  bounds: Expression,
  times: readonly number[],
): Promise<Map<number, number>> {
  const counts = new Map<number, number>();
  let below = Number.POSITIVE_INFINITY;
  let sum = 0;
  for (const from of times.toSorted((a, b) => b - a)) {
    if (sum < COUNT_MAX && from < below) {
      sum += await source.count(bounds, { from, below }, COUNT_MAX - sum);
    }
    counts.set(from, sum);
    below = from;
  }
  return counts;
}

/** How many entries the terms were looked for in. */
async function totalWithin<K>(source: SearchSource<K>, bounds: Expression): Promise<number> {
  if (bounds.all.length === 0) return source.total();
  const within = await source.list(bounds, ANY_TIME, LIST_MAX);
  return within.length < LIST_MAX ? within.length : source.total();
}

const ANY_TIME: Between = { from: null, to: null, past: null };

interface Ranking<K> {
  readonly keys: readonly K[];
  readonly lists: readonly TermList<K>[];
  readonly terms: readonly Term[];
  readonly search: EntrySearch;
}

async function rankedPage<K>(source: SearchSource<K>, ranking: Ranking<K>): Promise<HitRow[]> {
  const { keys, search } = ranking;
  const { limit } = search;
  const offset = search.from?.offset ?? 0;
  const out: HitRow[] = [];
  for (let from = offset - (offset % BLOCK); from < Math.min(offset + limit, keys.length); from += BLOCK) {
    const block = await rankedBlock(source, keys.slice(from, from + BLOCK), ranking);
    out.push(...block.slice(Math.max(0, offset - from), offset + limit - from));
  }
  return out;
}

async function rankedBlock<K>(
  source: SearchSource<K>,
  keys: readonly K[],
  { lists, terms, search }: Ranking<K>,
): Promise<HitRow[]> {
  const holds = termsByKey(keys, lists);
  const weights = lists.map(({ share }) => weightOf(share));
  const scored = [];
  for (const { key, row } of await source.rows(keys, search)) {
    const text = searchedText(row.entry.body).slice(0, READ_CHARACTERS);
    const has = holds.get(key) ?? [];
    const facts = { text, found: findTerms(text, terms), ageMs: search.now - row.entry.at, has };
    scored.push({ row, score: scoreOf(facts, weights) });
    await source.breathe();
  }
  return scored.sort((a, b) => b.score - a.score || newestFirst(a.row, b.row)).map(({ row }) => row);
}

/** Which of the terms' lists hold each of these. */
function termsByKey<K>(keys: readonly K[], lists: readonly TermList<K>[]): Map<K, number[]> {
  const holds = new Map<K, number[]>(keys.map((key) => [key, []]));
  for (const [term, { found, also }] of lists.entries()) {
    for (const { key } of [...found, ...also]) holds.get(key)?.push(term);
  }
  return holds;
}

async function page<K>(source: SearchSource<K>, keys: readonly K[], search: EntrySearch): Promise<HitRow[]> {
  const rows = await source.rows(keys, search);
  return rows.map(({ row }) => row).sort(newestFirst);
}

function newestFirst(a: HitRow, b: HitRow): number {
  return (
    b.entry.at - a.entry.at ||
    (a.entry.sessionId < b.entry.sessionId ? -1 : Number(a.entry.sessionId > b.entry.sessionId)) ||
    b.entry.index - a.entry.index
  );
}

function hitOf({ entry, ...of }: HitRow, terms: readonly Term[], lineage: readonly string[]): EntryHit {
  const { rootId, sessionId, index, turnId, author, kind, at } = entry;
  const snippet = snippetOf(searchedText(entry.body).slice(0, SNIPPET_CHARACTERS), terms);
  const mark = entry.body.open === true ? { open: true } : {};
  return { rootId, sessionId, ...of, lineage, turnId, index, author, kind, at, snippet, ...mark };
}

async function near<K>(
  source: SearchSource<K>,
  search: EntrySearch,
  terms: readonly Term[],
): Promise<EntryFound["near"]> {
  const of = JSON.stringify(search.visible);
  let known = recentWords.get(of);
  if (known === undefined || performance.now() - known.at > RECENT_MS) {
    known = { words: await wordsOfNewest(source, search), at: performance.now() };
    if (recentWords.size >= RECENT_MAX) recentWords.clear();
    recentWords.set(of, known);
  }
  const asked = terms.flatMap(({ words }) => words);
  return nearestWords(asked, known.words);
}

/** By the scopes that may see them; who mistypes once often does so again. */
const recentWords = new Map<string, { words: Set<string>; at: number }>();
const RECENT_MS = 30_000;
const RECENT_MAX = 8;

async function wordsOfNewest<K>(source: SearchSource<K>, search: EntrySearch): Promise<Set<string>> {
  const nothing = {
    any: [],
    all: [],
    none: [],
    filters: [],
    after: null,
    before: null,
    tree: null,
    sort: null,
  };
  const bounds = boundsOf({ ...search, query: nothing, sessionId: null, rootId: null });
  const newest = await source.list(bounds, ANY_TIME, NEAR_ENTRIES);
  const rows = await source.rows(
    newest.map(({ key }) => key),
    search,
  );
  const known = new Set<string>();
  for (const { row } of rows) {
    await source.breathe();
    for (const word of wordsOf(searchedText(row.entry.body).slice(0, READ_CHARACTERS))) known.add(word);
  }
  return known;
}

function second(at: number | null): number | null {
  return at === null ? null : Math.floor(at / 1_000) * 1_000;
}

function least(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
