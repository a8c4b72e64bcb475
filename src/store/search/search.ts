import { within } from "../../search/expression.ts";
import { nearestWords } from "../../search/near.ts";
import { type Draft, type EntrySearch, findEntries, type SearchSource } from "../../search/plan.ts";
import type { Term } from "../../search/query.ts";
import { snippetOf } from "../../search/snippet.ts";
import { searchedText, wordsOf } from "../../search/words.ts";
import type { EntryFound, EntryHit } from "../port/store.ts";
import type { Row, Sql } from "../sql.ts";
import { draftOf, draftRows, type HitRow, lineageRows } from "./row.ts";
import { valuesOf, word } from "../column.ts";

/** The part of a search that differs between the databases. */
export interface SearchDatabase extends Omit<SearchSource<HitRow>, "drafts"> {
  all(statement: Sql): Promise<Row[]>;
  /** Whether all entries have been indexed. */
  isWhole(): Promise<boolean>;
}

/**
 * Snippets are made from only this much of an entry, because the index stores no more of it. On PostgreSQL
 * the main thread makes the snippets, so they must be quick.
 */
const SNIPPET_CHARACTERS = 64 * 1024;
/** If nothing was found, similar words from this many of the newest entries are suggested. */
const NEAR_ENTRIES = 200;
const NEAR_CHARACTERS = 8 * 1024;

export async function searchEntries(db: SearchDatabase, search: EntrySearch): Promise<EntryFound> {
  const drafts: Draft<HitRow>[] = [];
  for (const row of await db.all(draftRows(search))) {
    drafts.push(draftOf(row));
    await db.checkTime();
  }
  const { rows, next, total } = await findEntries({ ...db, drafts }, search);
  const { any, all } = search.query;
  const terms = [...any, ...all];
  const lineages = await lineagesOf(db, [...new Set(rows.map(({ entry }) => entry.sessionId))]);
  return {
    hits: rows.map((row) => hitOf(row, terms, lineages.get(row.entry.sessionId) ?? [])),
    next,
    total,
    isWhole: await db.isWhole(),
    near: total === 0 && search.from === null ? await near(db, search, terms) : [],
  };
}

async function lineagesOf(db: SearchDatabase, sessionIds: readonly string[]): Promise<Map<string, string[]>> {
  const rows = (await db.all(lineageRows(sessionIds))).map((row) => valuesOf(row, word(), word()));
  return new Map(
    [...Map.groupBy(rows, ([of]) => of)].map(([of, line]) => [of, line.map(([, label]) => label)]),
  );
}

function hitOf(
  { entry, position: _, ...of }: HitRow,
  terms: readonly Term[],
  lineage: readonly string[],
): EntryHit {
  const { rootId, sessionId, index, turnId, author, kind, at } = entry;
  const snippet = snippetOf(searchedText(entry.body).slice(0, SNIPPET_CHARACTERS), terms);
  const mark = entry.body.open === true ? { open: true } : {};
  return { rootId, sessionId, ...of, lineage, turnId, index, author, kind, at, snippet, ...mark };
}

async function near(
  db: SearchDatabase,
  { visible }: EntrySearch,
  terms: readonly Term[],
): Promise<EntryFound["near"]> {
  const scopes = JSON.stringify(visible);
  let known = recentWords.get(scopes);
  if (known === undefined || performance.now() - known.at > RECENT_MS) {
    known = { words: await wordsOfNewest(db, visible), at: performance.now() };
    if (recentWords.size >= RECENT_MAX) recentWords.clear();
    recentWords.set(scopes, known);
  }
  return nearestWords(
    terms.flatMap(({ words }) => words),
    known.words,
  );
}

/**
 * Caches the words of the newest entries for each set of visible scopes. A caller who mistypes a word often
 * searches again at once and needs them again.
 */
const recentWords = new Map<string, { words: Set<string>; at: number }>();
const RECENT_MS = 30_000;
const RECENT_MAX = 8;

async function wordsOfNewest(db: SearchDatabase, visible: EntrySearch["visible"]): Promise<Set<string>> {
  const newest = await db.list(within(visible), { from: 0, to: Infinity, past: null }, NEAR_ENTRIES);
  const positions = newest.map(({ position }) => position);
  const words = new Set<string>();
  for (const { entry } of await db.rows(positions)) {
    for (const word of wordsOf(searchedText(entry.body).slice(0, NEAR_CHARACTERS))) words.add(word);
    await db.checkTime();
  }
  return words;
}
