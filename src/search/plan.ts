import type { EntryBody } from "../contract/entry.ts";
import { type Bounds, boundsOf, type Expression, fitsWords } from "./expression.ts";
import { findTerms } from "./find.ts";
import type { SearchQuery } from "./query.ts";
import { type Candidate, type CandidateList, recency, scoreOf, weightsOf } from "./rank.ts";
import { searchedText } from "./words.ts";

/**
 * The part of a search that a database provides. The database also gives each entry a position. Positions are
 * strings that sort like the entries, oldest first.
 */
export interface SearchSource<R extends SearchRow> {
  /** Returns the matching entries, newest first. */
  list(expression: Expression, period: Period, limit: number): Promise<Candidate[]>;
  /** Returns the rows at these positions, in any order. Leaves out rows that the search may not see. */
  rows(positions: readonly string[]): Promise<R[]>;
  /** Messages that are still being written, in the scopes that the search may see. They are not in the index. */
  readonly drafts: readonly Draft<R>[];
  /** Yields to other work on this thread. Throws when the search has used up its time. */
  checkTime(): Promise<void>;
}

export interface SearchRow {
  readonly position: string;
  readonly entry: { readonly at: number; readonly body: EntryBody };
}

export interface Draft<R> {
  readonly row: R;
  readonly words: readonly string[];
}

export interface Period {
  /** Inclusive. */
  readonly from: number;
  /** Exclusive; may be infinite. */
  readonly to: number;
  /** Only entries older than the one at this position are listed; null for all. */
  readonly past: string | null;
}

export interface EntrySearch extends Bounds {
  readonly sort: "relevance" | "newest";
  readonly limit: number;
  /** Ages are measured from this time, which stays the same for every page of one search. */
  readonly now: number;
  /** Null for the first page. */
  readonly from: SearchPosition | null;
}

/** Where a page starts. Entries that arrived after the first page, at or after `below`, are on no page. */
export interface SearchPosition {
  /** How many candidates to skip. */
  readonly offset: number;
  readonly below: number;
  /** Only entries older than the one at this position are candidates; null for all. */
  readonly past: string | null;
}

export interface FoundRows<R> {
  readonly rows: readonly R[];
  /** Null on the last page. */
  readonly next: SearchPosition | null;
  /** Null if there are more matches than were listed. */
  readonly total: number | null;
}

/** The prefix of a draft's position. It sorts as newer than every other position, so drafts come first. */
export const DRAFT = "draft/";

/** The maximum length of a candidate list. */
const LIST_MAX = 80;
/** How many candidates are ranked as one group. All pages use the same groups, so no entry appears twice. */
const RANKED = 24;
/** How many characters of a candidate are read to rank it. */
const READ_CHARACTERS = 8 * 1024;

/**
 * Collects candidates, then ranks them. The candidates are the newest entries with each word, and older
 * entries with several words. Their number is limited, so a common word costs no more than a rare one. A
 * rough order by words and age divides the candidates into groups of 24. Each group is then read and ranked
 * by BM25. If results are sorted by time, or if there is only one list, later pages continue past the
 * candidates until everything is shown.
 */
export async function findEntries<R extends SearchRow>(
  source: SearchSource<R>,
  asked: EntrySearch,
): Promise<FoundRows<R>> {
  const { query, sort, limit, now, from } = asked;
  const search = new Search(source, asked);
  const lists = await search.lists();
  const weights = termWeights(query, lists);
  const isByTime = sort === "newest" || lists.length === 1;
  const { candidates, past } = isByTime
    ? newestOf(lists)
    : { candidates: roughOrder([...lists, ...(await search.together(lists))], weights, now), past: null };
  const offset = from?.offset ?? 0;
  const rows =
    sort === "newest"
      ? (await search.rows(candidates.slice(offset, offset + limit))).sort(newestFirst)
      : await search.ranked(candidates, weights);
  return {
    rows,
    next: nextPage(asked, candidates.length > offset + limit, past),
    total: lists.some(({ isCut }) => isCut) ? null : candidates.length,
  };
}

class Search<R extends SearchRow> {
  readonly #source: SearchSource<R>;
  readonly #search: EntrySearch;
  readonly #bounds: Expression;

  constructor(source: SearchSource<R>, search: EntrySearch) {
    this.#source = source;
    this.#search = search;
    this.#bounds = boundsOf(search);
  }

  /**
   * Returns one list for each optional word. If the query has phrases, or has no optional words, adds a list
   * that requires no optional word.
   */
  async lists(): Promise<CandidateList[]> {
    const { any, all } = this.#search.query;
    const asked = any.map((_term, index) => [index]);
    if (any.length === 0 || all.length > 0) asked.push([]);
    const lists: CandidateList[] = [];
    for (const words of asked) lists.push(await this.#list(words));
    return lists;
  }

  /**
   * Returns lists of older entries that contain several optional words. Uses only words whose list was cut,
   * because an uncut list already has every entry with its word. The first list has the entries with the two
   * rarest of these words. If this list and the lists of all words were cut, a second list has the entries
   * with all words.
   */
  async together(lists: readonly CandidateList[]): Promise<CandidateList[]> {
    const oldest = (word: number): number => lists[word]?.found.at(-1)?.at ?? 0;
    const words = [...this.#search.query.any.keys()];
    // Rarest word first. Cut lists are equally long, so the list of a rarer word reaches further back.
    const cut = words.filter((word) => lists[word]?.isCut).sort((a, b) => oldest(a) - oldest(b));
    const older = (some: number[]): Promise<CandidateList> => {
      // Newer entries with all of these words are already in one of the lists.
      const below = Math.floor(Math.max(...some.map(oldest))) + 1;
      return this.#list(some, below);
    };
    if (cut.length < 2) return [];
    const rarest = await older(cut.slice(0, 2));
    const isAllAsked = rarest.isCut && cut.length === words.length && cut.length > 2;
    return isAllAsked ? [rarest, await older(cut)] : [rarest];
  }

  async ranked(candidates: readonly Held[], weights: readonly number[]): Promise<R[]> {
    const from = this.#search.from?.offset ?? 0;
    const to = Math.min(from + this.#search.limit, candidates.length);
    const rows: R[] = [];
    for (let at = from - (from % RANKED); at < to; at += RANKED) {
      const group = await this.#rankedGroup(candidates.slice(at, at + RANKED), weights);
      rows.push(...group.slice(Math.max(0, from - at), to - at));
    }
    return rows;
  }

  async rows(candidates: readonly Held[]): Promise<R[]> {
    const positions = new Set(candidates.map(({ position }) => position));
    const drafts = this.#source.drafts
      .map(({ row }) => row)
      .filter(({ position }) => positions.has(position));
    const entries = [...positions].filter((position) => !position.startsWith(DRAFT));
    return entries.length === 0 ? drafts : [...drafts, ...(await this.#source.rows(entries))];
  }

  /** Returns the newest entries that contain the given optional words. */
  async #list(words: readonly number[], below = Infinity): Promise<CandidateList> {
    const { query, from } = this.#search;
    const wanted = words.map((index) => [query.any[index]!]);
    const expression = { ...this.#bounds, all: [...wanted, ...this.#bounds.all] };
    const period = {
      from: wholeSecond(query.after ?? 0),
      to: Math.min(wholeSecond(query.before ?? Infinity), from?.below ?? Infinity, below),
      past: from?.past ?? null,
    };
    const entries = await this.#source.list(expression, period, LIST_MAX + 1);
    const drafts = period.past === null ? await this.#drafts(expression, period) : [];
    await this.#source.checkTime();
    return {
      found: [...drafts, ...entries.slice(0, LIST_MAX)],
      isCut: entries.length > LIST_MAX,
      terms: [...words, ...query.all.map((_term, index) => query.any.length + index)],
    };
  }

  async #drafts(expression: Expression, { from, to }: Period): Promise<Candidate[]> {
    const found: Candidate[] = [];
    for (const { row, words } of this.#source.drafts) {
      const { at } = row.entry;
      if (at >= from && at < to && fitsWords(words, expression)) found.push({ position: row.position, at });
      await this.#source.checkTime();
    }
    return found;
  }

  async #rankedGroup(candidates: readonly Held[], weights: readonly number[]): Promise<R[]> {
    const { query, now } = this.#search;
    const terms = [...query.any, ...query.all];
    const holds = new Map(candidates.map((held) => [held.position, held.terms]));
    const scored: { row: R; score: number }[] = [];
    for (const row of await this.rows(candidates)) {
      const text = searchedText(row.entry.body).slice(0, READ_CHARACTERS);
      const found = findTerms(text, terms);
      const has = holds.get(row.position) ?? [];
      scored.push({ row, score: scoreOf({ text, found, ageMs: now - row.entry.at, has }, weights) });
      await this.#source.checkTime();
    }
    return scored.sort((a, b) => b.score - a.score || newestFirst(a.row, b.row)).map(({ row }) => row);
  }
}

/** Returns one weight per term, optional words first. All phrases have the weight of the list they share. */
function termWeights({ any, all }: SearchQuery, lists: readonly CandidateList[]): number[] {
  const weights = weightsOf(lists);
  return [...weights.slice(0, any.length), ...all.map(() => weights.at(-1) ?? 0)];
}

interface Held extends Candidate {
  terms: readonly number[];
}

/** Merges the lists: each candidate once, with all terms that it is known to contain. */
function union(lists: readonly CandidateList[]): Held[] {
  const all = new Map<string, Held>();
  for (const { found, terms } of lists) {
    for (const { position, at } of found) {
      const held = all.get(position);
      if (held === undefined) all.set(position, { position, at, terms });
      else held.terms = [...held.terms, ...terms.filter((term) => !held.terms.includes(term))];
    }
  }
  return [...all.values()];
}

/**
 * Returns the newest candidates. A list that was cut may lack older entries. So if any list was cut, returns
 * at most `LIST_MAX` entries besides drafts, and `past` is the position of the last one.
 */
function newestOf(lists: readonly CandidateList[]): { candidates: Held[]; past: string | null } {
  const all = union(lists);
  if (lists.length > 1) all.sort(byPosition);
  if (!lists.some(({ isCut }) => isCut)) return { candidates: all, past: null };
  const drafts = all.filter(({ position }) => position.startsWith(DRAFT)).length;
  const candidates = all.slice(0, drafts + LIST_MAX);
  return { candidates, past: candidates.at(-1)?.position ?? null };
}

function roughOrder(lists: readonly CandidateList[], weights: readonly number[], now: number): Held[] {
  const scored = union(lists).map((held) => {
    const sum = held.terms.reduce((total, term) => total + (weights[term] ?? 0), 0);
    return { held, score: sum * recency(now - held.at) };
  });
  return scored.sort((a, b) => b.score - a.score || byPosition(a.held, b.held)).map(({ held }) => held);
}

function nextPage(
  { from, limit, now }: EntrySearch,
  isMore: boolean,
  past: string | null,
): SearchPosition | null {
  const below = from?.below ?? wholeSecond(now) + 1_000;
  if (isMore) return { offset: (from?.offset ?? 0) + limit, below, past: from?.past ?? null };
  return past === null ? null : { offset: 0, below, past };
}

function newestFirst(a: SearchRow, b: SearchRow): number {
  return b.entry.at - a.entry.at || byPosition(a, b);
}

function byPosition(a: { readonly position: string }, b: { readonly position: string }): number {
  return a.position < b.position ? 1 : -Number(a.position > b.position);
}

/** SQLite's index stores only whole seconds, so periods are rounded to them. */
function wholeSecond(at: number): number {
  return Math.floor(at / 1_000) * 1_000;
}
