import { drafts, openEntry } from "../tables/draft.ts";
import { type Expression, fitsWords, indexedWords } from "./entry-index.ts";
import type { EntrySearch } from "../port/store.ts";
import type { HitRow, Listed, SearchSource } from "./search.ts";
import { within } from "../tables/session.ts";
import { raw, sql, type Row, type Sql } from "../sql.ts";

/** Messages that are being written: few, and not worth an index that would be rewritten every second. */
export class OpenDraft {
  readonly row: HitRow;
  readonly #scope: string;
  #words: readonly string[] | null = null;

  constructor(row: HitRow, scope: string) {
    this.row = row;
    this.#scope = scope;
  }

  get at(): number {
    return this.row.entry.at;
  }

  fits(expression: Expression): boolean {
    const { entry, agent } = this.row;
    this.#words ??= indexedWords(entry, { agent, scope: this.#scope });
    return fitsWords(this.#words, expression);
  }
}

const DRAFTS_MAX = 200;
/** No more of a text is searched than the index would hold. */
const COLUMNS = raw(drafts.columnsOf("d").text.replace("d.text", "substr(d.text, 1, 65536)"));

export function draftRows({ visible }: EntrySearch): Sql {
  return sql`SELECT s.short_id, s.name, s.agent, t.idx, s.scope, s.entry_count, ${COLUMNS}
    FROM drafts d JOIN sessions s ON s.id = d.session_id LEFT JOIN turns t ON t.id = d.turn_id
    WHERE ${within(visible)} ORDER BY d.at DESC, d.session_id LIMIT ${DRAFTS_MAX}`;
}

export function draftOf(row: Row): OpenDraft {
  const [shortId, name, agent, turnIndex, scope, index] = row as unknown as [
    string,
    string | null,
    string,
    number | null,
    string,
    number,
  ];
  const entry = openEntry(drafts.record(row.slice(6)), index);
  return new OpenDraft({ shortId, name, agent, turnIndex, entry }, scope);
}

/** A source that also finds messages that are still being written, each among the entries of its time. */
export function withDrafts<K>(
  source: SearchSource<K>,
  found: readonly OpenDraft[],
): SearchSource<K | OpenDraft> {
  /** The entry that comes before a draft in a list: a next page goes on behind it. */
  const before = new Map<OpenDraft, Listed<K>>();
  const order = (a: Listed<K | OpenDraft>, b: Listed<K | OpenDraft>): number => {
    if (!isDraft(a) && !isDraft(b)) return source.order(a as Listed<K>, b as Listed<K>);
    return b.at - a.at || Number(isDraft(b)) - Number(isDraft(a)) || sessionOrder(a, b);
  };
  return {
    ...source,
    async list(expression, between, limit) {
      const entries = await source.list(expression, between, limit);
      // Later pages begin behind an entry; what is being written was on the first.
      if (between.past !== null) return entries;
      const { from, to } = between;
      const fitting = found.filter(({ at }) => (from === null || at >= from) && (to === null || at < to));
      const open = [];
      for (const draft of fitting) {
        if (draft.fits(expression)) open.push({ key: draft, at: draft.at });
        await source.breathe();
      }
      const all = [...open, ...entries].sort(order);
      for (const [i, one] of all.entries()) {
        const last = all.slice(0, i).findLast((each) => !isDraft(each));
        if (isDraft(one) && last !== undefined) before.set(one.key, last as Listed<K>);
      }
      return all;
    },
    async rows(keys, search) {
      const open = keys.filter((key) => key instanceof OpenDraft);
      const entries = keys.filter((key): key is K => !(key instanceof OpenDraft));
      const rows = entries.length === 0 ? [] : await source.rows(entries, search);
      return [...open.map((key) => ({ key, row: key.row })), ...rows];
    },
    order,
    place(at) {
      if (!isDraft(at)) return source.place(at as Listed<K>);
      const last = before.get(at.key);
      return last === undefined ? "0" : source.place(last);
    },
  };
}

function isDraft<K>(one: Listed<K | OpenDraft>): one is Listed<OpenDraft> {
  return one.key instanceof OpenDraft;
}

function sessionOrder<K>(a: Listed<K | OpenDraft>, b: Listed<K | OpenDraft>): number {
  const of = (one: Listed<K | OpenDraft>): string => (isDraft(one) ? one.key.row.entry.sessionId : "");
  return of(a) < of(b) ? -1 : 1;
}
