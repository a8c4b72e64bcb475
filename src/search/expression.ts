import type { EntryAuthor, EntryBody, EntryKind } from "../contract/entry.ts";
import type { Filter, SearchQuery, Term } from "./query.ts";
import { isTermAt, searchedText, wordsOf } from "./words.ts";

/** Matches an entry that contains at least one term of each list in `all`, and no term of `none`. */
export interface Expression {
  readonly all: readonly (readonly Term[])[];
  readonly none: readonly Term[];
}

interface IndexedEntry {
  readonly rootId: string;
  readonly sessionId: string;
  readonly author: EntryAuthor;
  readonly kind: EntryKind;
  readonly body: EntryBody;
}

/** A session's fields that are indexed with each of its entries. Only `scope-move.ts` changes the scope. */
export interface IndexedSession {
  readonly agent: string;
  readonly scope: string;
}

export interface Bounds {
  readonly query: SearchQuery;
  /** The scopes that may be searched. Entries of other scopes are never found, counted or hinted at. */
  readonly visible: "all" | readonly string[];
  /** Limits the search to one session or one tree; null means no such limit. */
  readonly sessionId: string | null;
  readonly rootId: string | null;
}

/**
 * PostgreSQL stores no word position beyond 16,383, so the words of an entry's text and paths must together
 * stay below that number. The limit on characters also keeps one huge entry from delaying the others.
 */
const CHARACTERS_MAX = 64 * 1024;
const WORDS_MAX = 12_000;
const PATH_WORDS_MAX = 4_000;

/** Words that only a filter can match begin with these characters. No word of a text contains them. */
const LEAD = {
  session: "\ue000",
  tree: "\ue001",
  scope: "\ue002",
  agent: "\ue003",
  author: "\ue004",
  tool: "\ue005",
  path: "\ue006",
  border: "\ue007",
} as const;

/** Returns the words of an entry in order, then the words for the filters, such as session, tree and tool. */
export function indexedWords(record: IndexedEntry, session: IndexedSession): string[] {
  // Inherited entries are copies of the parent's entries, so a search finds them only in the parent.
  const text = record.kind === "inherited" ? "" : searchedText(record.body);
  const words = wordsOf(text.slice(0, CHARACTERS_MAX), WORDS_MAX);
  const { tool, paths = [] } = record.body;
  const pathWords = paths.slice(0, PATHS_MAX).flatMap((path) => [...led("path", path), LEAD.border]);
  return [
    ...words,
    LEAD.session + plainId(record.sessionId),
    LEAD.tree + plainId(record.rootId),
    LEAD.scope + exact(session.scope),
    LEAD.agent + exact(session.agent.toLowerCase()),
    LEAD.author + record.author,
    ...(tool === undefined ? [] : led("tool", tool).slice(0, TOOL_WORDS_MAX)),
    ...pathWords.slice(0, PATH_WORDS_MAX),
  ];
}

const PATHS_MAX = 200;
const TOOL_WORDS_MAX = 100;

/** Returns whether an entry with these words matches. Gives the same answer as the index, but in memory. */
export function fitsWords(words: readonly string[], { all, none }: Expression): boolean {
  const isThere = (term: Term): boolean =>
    words.some((_word, from) => isTermAt(term, (n) => words[from + n] ?? ""));
  return all.every((terms) => terms.some(isThere)) && !none.some(isThere);
}

/** Returns the conditions that every hit must meet. The optional words are not among them. */
export function boundsOf({ query, visible, sessionId, rootId }: Bounds): Expression {
  const all: (readonly Term[])[] = query.all.map((term) => [term]);
  const none: Term[] = [...query.none];
  for (const field of ["agent", "author", "tool", "path"] as const) {
    const of = query.filters.filter((filter) => filter.field === field);
    const wanted = of.filter(({ isNot }) => !isNot).map(filterTerm);
    if (wanted.length > 0) all.push(wanted);
    none.push(...of.filter(({ isNot }) => isNot).map(filterTerm));
  }
  if (sessionId !== null) all.push([tag(LEAD.session + plainId(sessionId))]);
  if (rootId !== null) all.push([tag(LEAD.tree + plainId(rootId))]);
  return { all: [...all, ...within(visible).all], none };
}

/** Matches all entries of these scopes. */
export function within(visible: Bounds["visible"]): Expression {
  return { all: visible === "all" ? [] : [visible.map(scopeTag)], none: [] };
}

function filterTerm({ field, value, term }: Filter): Term {
  if (field === "agent") return tag(LEAD.agent + exact(value));
  if (field === "author") return tag(LEAD.author + value);
  return { words: term.words.map((word) => LEAD[field] + word), isPrefix: term.isPrefix };
}

function scopeTag(scope: string): Term {
  return tag(LEAD.scope + exact(scope));
}

function tag(word: string): Term {
  return { words: [word], isPrefix: false };
}

function led(lead: "tool" | "path", text: string): string[] {
  return wordsOf(text).map((word) => LEAD[lead] + word);
}

function plainId(id: string): string {
  return id.replaceAll("-", "");
}

/**
 * Names of scopes and agents are cut to this length, because PostgreSQL refuses a word of more than 2,046
 * bytes. Real names are shorter, so only a name typed into a query is cut.
 */
const EXACT_MAX = 200;

/** Encodes the characters that would separate words, so that a name stays one word. */
function exact(text: string): string {
  return text
    .slice(0, EXACT_MAX)
    .replaceAll(/[^0-9a-z\u0080-\uffff]/g, (character) =>
      String.fromCharCode(0xe100 + character.charCodeAt(0)),
    );
}
