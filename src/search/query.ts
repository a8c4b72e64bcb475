import { EntryAuthor } from "../contract/entry.ts";
import { dateOf, DATE_FORMS } from "./date.ts";
import { wordsOf } from "./words.ts";
import { shortLine } from "../text/fence.ts";

/** One word, or several adjacent words. With `isPrefix` the last may be the beginning of a longer word. */
export interface Term {
  readonly words: readonly string[];
  readonly isPrefix: boolean;
}

type FilterField = "agent" | "author" | "tool" | "path";

export interface Filter {
  readonly field: FilterField;
  /** In lower case; for `author`, one of the known authors. */
  readonly value: string;
  readonly term: Term;
  readonly isNot: boolean;
}

/**
 * A parsed query. `any`: words; a hit with more of them ranks higher. `all`: phrases that a hit must contain.
 * `none`: terms that it must not contain.
 */
export interface SearchQuery {
  readonly any: readonly Term[];
  readonly all: readonly Term[];
  readonly none: readonly Term[];
  /** Filters on one field are OR-ed; filters on different fields are AND-ed. */
  readonly filters: readonly Filter[];
  /** Milliseconds since the epoch: `after` is inclusive, `before` exclusive. */
  readonly after: number | null;
  readonly before: number | null;
  /** Names a session; the search covers that session's tree. */
  readonly tree: string | null;
  readonly sort: "relevance" | "newest" | null;
}

type ParsedQuery =
  | { readonly isOk: true; readonly query: SearchQuery }
  | { readonly isOk: false; readonly problem: string };

/** The allowed syntax, for the refusal of a malformed query. */
const QUERY_FORMS =
  'Write words (more of them rank higher), "an exact phrase", begin*, -without, and agent: author: tool: path: before: after: tree: sort:newest.';

const TERMS_MAX = 64;
const PREFIX_MIN = 2;

/**
 * Parses a query, or says what is wrong with it. Characters that the syntax does not use (parentheses,
 * colons, an unfinished quote) only separate words, so that pasted code works as a query.
 */
export function parseQuery(text: string, now: number): ParsedQuery {
  const draft = new Draft(now);
  for (const item of itemsOf(text)) {
    const problem = draft.take(item);
    if (problem !== null) return { isOk: false, problem };
  }
  return draft.end();
}

interface Item {
  readonly field: string | null;
  readonly value: string;
  readonly isQuoted: boolean;
  readonly isNot: boolean;
}

const FIELDS = ["agent", "author", "tool", "path", "before", "after", "tree", "sort"] as const;
const FIELD = new RegExp(`^(${FIELDS.join("|")}):`, "i");
const QUOTES = /["“”„«»]/;

function* itemsOf(text: string): Generator<Item> {
  let rest = text;
  let isNot = false;
  for (;;) {
    rest = rest.replace(SPACE, "");
    if (rest === "") return;
    if (/^-[^\s-]/.test(rest)) {
      isNot = true;
      rest = rest.slice(1);
      continue;
    }
    const field = FIELD.exec(rest)?.[1]?.toLowerCase() ?? null;
    if (field !== null) rest = rest.slice(field.length + 1);
    const { value, isQuoted, after } = valueOf(rest);
    rest = after;
    if (field === null && !isQuoted && value === "NOT") {
      isNot = true;
      continue;
    }
    if (field !== null || isQuoted || (value !== "AND" && value !== "OR"))
      yield { field, value, isQuoted, isNot };
    isNot = false;
  }
}

// oxlint-disable-next-line no-control-regex -- A control character separates words like a space.
const SPACE = /^[\s\u0000-\u001f\u007f]+/;

/** Reads a quoted value up to the closing quote or the end, an unquoted one up to the next space or quote. */
function valueOf(text: string): { value: string; isQuoted: boolean; after: string } {
  if (QUOTES.test(text.charAt(0))) {
    const length = text.slice(1).search(QUOTES);
    if (length < 0) return { value: text.slice(1), isQuoted: true, after: "" };
    return { value: text.slice(1, length + 1), isQuoted: true, after: text.slice(length + 2) };
  }
  // oxlint-disable-next-line no-control-regex -- Same as SPACE.
  const length = text.search(/[\s\u0000-\u001f\u007f"“”„«»]/);
  return length < 0
    ? { value: text, isQuoted: false, after: "" }
    : { value: text.slice(0, length), isQuoted: false, after: text.slice(length) };
}

const NOWHERE = { after: null, before: null, tree: null, sort: null } as const;

class Draft {
  readonly #now: number;
  readonly #any = new Map<string, Term>();
  readonly #all = new Map<string, Term>();
  readonly #none = new Map<string, Term>();
  readonly #filters: Filter[] = [];
  #where: Pick<SearchQuery, "after" | "before" | "tree" | "sort"> = NOWHERE;

  constructor(now: number) {
    this.#now = now;
  }

  /** Adds the item to the query. Returns what is wrong with the item, or null. */
  take(item: Item): string | null {
    if (item.field !== null) return this.#field(item.field, item);
    const term = termOf(item.value, item.isQuoted);
    if (term === null) return null;
    if (isTooShort(term)) {
      return `"${term.words[0]}*" is too short: the beginning of a word needs at least ${PREFIX_MIN} letters.`;
    }
    const into = item.isNot ? this.#none : item.isQuoted ? this.#all : this.#any;
    into.set(JSON.stringify(term), term);
    return null;
  }

  end(): ParsedQuery {
    const terms = [this.#any, this.#all, this.#none].reduce(
      (sum, { size }) => sum + size,
      this.#filters.length,
    );
    if (terms > TERMS_MAX) {
      return refused(
        `There are ${terms} words; a search takes at most ${TERMS_MAX}. Keep those that matter.`,
      );
    }
    const wanted = this.#any.size + this.#all.size + this.#filters.filter(({ isNot }) => !isNot).length;
    const { after, before, tree } = this.#where;
    const isPlaced = after !== null || before !== null || tree !== null;
    if (wanted === 0 && this.#none.size + this.#filters.length > 0 && !isPlaced) {
      return refused(`The query says only what not to find. Add what to find. ${QUERY_FORMS}`);
    }
    if (wanted === 0 && !isPlaced) return refused(`There is no word to search for. ${QUERY_FORMS}`);
    if (after !== null && before !== null && after >= before) {
      return refused("Nothing can be both: before: must name a later time than after:.");
    }
    return {
      isOk: true,
      query: {
        any: [...this.#any.values()],
        all: [...this.#all.values()],
        none: [...this.#none.values()],
        filters: this.#filters,
        ...this.#where,
      },
    };
  }

  #field(field: string, item: Item): string | null {
    const value = item.value.trim();
    if (value === "") return `${field}: needs a value right behind it, such as ${EXAMPLES[field]}.`;
    if (field === "before" || field === "after") return this.#date(field, value, item.isNot);
    if (field === "sort") return this.#sorted(value);
    if (field === "tree") {
      if (item.isNot) return "tree: can only be where to look, not where not to.";
      this.#where = { ...this.#where, tree: value };
      return null;
    }
    return this.#filter(field as FilterField, value, item.isNot);
  }

  #date(field: "before" | "after", value: string, isNot: boolean): string | null {
    if (isNot) return `-${field}: says nothing; write ${field === "before" ? "after" : "before"}: instead.`;
    const at = dateOf(value, this.#now);
    if (at === null) return `"${shown(value)}" is no date for ${field}:. ${DATE_FORMS}`;
    this.#where = { ...this.#where, [field]: at };
    return null;
  }

  #sorted(value: string): string | null {
    const sort = value.toLowerCase();
    if (sort !== "newest" && sort !== "relevance") {
      return `"${shown(value)}" is no order; write sort:newest or sort:relevance.`;
    }
    this.#where = { ...this.#where, sort };
    return null;
  }

  #filter(field: FilterField, given: string, isNot: boolean): string | null {
    const value = field === "author" ? (AUTHORS[given.toLowerCase()] ?? null) : given.toLowerCase();
    if (value === null)
      return `"${shown(given)}" is no author; there are ${Object.keys(AUTHORS).join(", ")}.`;
    const term = termOf(given, false);
    if (term === null) return `${field}:${shown(given)} names nothing; write ${EXAMPLES[field]}.`;
    if (isTooShort(term)) return `${field}:${shown(given)} is too short; write ${EXAMPLES[field]}.`;
    this.#filters.push({ field, value, term, isNot });
    return null;
  }
}

function refused(problem: string): ParsedQuery {
  return { isOk: false, problem };
}

/** Returns null if the text contains no word. */
function termOf(text: string, isQuoted: boolean): Term | null {
  const words = wordsOf(text);
  if (words.length === 0) return null;
  return { words, isPrefix: !isQuoted && /[\p{L}\p{N}\p{M}]\*+$/u.test(text) };
}

function isTooShort({ words, isPrefix }: Term): boolean {
  return isPrefix && words.length === 1 && /^[\p{ASCII}]$/u.test(words[0] ?? "");
}

function shown(value: string): string {
  return shortLine(value, 40);
}

const AUTHORS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(EntryAuthor.options.map((author) => [author, author])),
  you: "person",
  kinfold: "daemon",
};

const EXAMPLES: Readonly<Record<string, string>> = {
  agent: "agent:codex",
  author: "author:tool",
  tool: "tool:Bash",
  path: "path:src/login.ts",
  before: "before:yesterday",
  after: "after:2d",
  tree: "tree:release",
  sort: "sort:newest",
};
