import type { SearchHit } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { parseQuery, type SearchQuery } from "../../search/query.ts";
import type { EntryHit, EntrySearch, SearchPosition, SessionRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { isFamily, resolveInScope } from "../access/resolve.ts";
import { callerSession } from "../access/authority.ts";

/** Searches the entries of one session, of one tree, or of all sessions that the caller may see. */
export const search: Handler<"search"> = async (deps, caller, { input }) => {
  const { from, now } =
    input.cursor === undefined ? { from: null, now: deps.now() } : positionIn(input.cursor);
  const query = queryOf(input.query, now);
  const self = callerSession(caller);
  const within = await searchedSessions(deps, caller, { ref: input.id, self, tree: query.tree });
  const asked: EntrySearch = {
    query,
    visible: caller.visible,
    ...within,
    sort: input.sort ?? query.sort ?? "relevance",
    limit: input.limit,
    now,
    from,
  };
  const found = await deps.store.search(asked);
  return {
    hits: found.hits.map((hit) => viewHit(hit, isFamily(self, hit))),
    cursor: found.next === null ? null : cursorOf(found.next, now),
    total: from === null ? found.total : null,
    isWhole: found.isWhole,
    near: [...found.near],
    elsewhere: found.hits.length === 0 && from === null ? await elsewhere(deps, asked) : null,
  };
};

function queryOf(text: string, now: number): SearchQuery {
  const parsed = parseQuery(text, now);
  if (parsed.isOk) return parsed.query;
  throw new Refusal("bad_query", parsed.problem);
}

/**
 * Without a named session or tree, a calling session searches its parent's entries; a calling root searches
 * its own. If only a tree is named, the whole tree is searched.
 */
async function searchedSessions(
  deps: OperationDeps,
  caller: CallerContext,
  at: { ref: string | undefined; self: SessionRecord | null; tree: string | null },
): Promise<{ sessionId: string | null; rootId: string | null }> {
  const rootId = at.tree === null ? null : (await resolveInScope(deps, caller, at.tree)).rootId;
  if (at.ref === "all") return { sessionId: null, rootId };
  if (at.ref !== undefined) return { sessionId: (await resolveInScope(deps, caller, at.ref)).id, rootId };
  return { sessionId: rootId === null ? (at.self?.parentId ?? at.self?.id ?? null) : null, rootId };
}

/** For a search that found nothing: counts its hits in all visible sessions, with its filters left out. */
async function elsewhere(deps: OperationDeps, asked: EntrySearch): Promise<number | null> {
  const { query } = asked;
  const isBound =
    asked.sessionId !== null || asked.rootId !== null || query.after !== null || query.before !== null;
  const hasWords = query.any.length + query.all.length > 0;
  if (!hasWords || (!isBound && query.filters.length === 0)) return null;
  const { hits, total } = await deps.store.search({
    ...asked,
    query: { ...query, filters: [], after: null, before: null },
    sessionId: null,
    rootId: null,
    limit: MANY,
    sort: "newest",
  });
  return total ?? hits.length;
}

const MANY = 50;

function viewHit(found: EntryHit, opens: boolean): SearchHit {
  const { turnIndex, snippet, lineage, rootId: _, ...hit } = found;
  const marks = snippet.marks.map(([from, to]): [number, number] => [from, to]);
  return { ...hit, opens, lineage: [...lineage], turn: turnIndex, snippet: snippet.text, marks };
}

/** A position's time may have a fraction of a millisecond. The cursor has it in units of 1/32 ms. */
const PARTS = 32;

function cursorOf({ offset, below, past }: SearchPosition, now: number): string {
  const position = `c${offset}.${now.toString(36)}.${Math.round(below * PARTS).toString(36)}`;
  return past === null ? position : `${position}.${past}`;
}

function positionIn(cursor: string): { from: SearchPosition; now: number } {
  const found = /^c(\d{1,6})\.([0-9a-z]{1,9})\.([0-9a-z]{1,10})(?:\.([\da-f/-]{1,80}))?$/.exec(cursor);
  if (found !== null) {
    const [, offset, now = "", below = "", past = null] = found;
    const at = Number.parseInt(below, 36) / PARTS;
    return { from: { offset: Number(offset), below: at, past }, now: Number.parseInt(now, 36) };
  }
  throw new Refusal(
    "invalid_input",
    `"${cursor}" is not a cursor that a search gave. Leave it out to begin.`,
  );
}
