import type { Visible } from "../../domain/scope.ts";
import type { SearchQuery } from "../../search/query.ts";
import type { Snippet } from "../../search/snippet.ts";
import type { EntryRecord } from "./record.ts";

/** A search over entries, and what it finds. */
export interface EntrySearch {
  readonly query: SearchQuery;
  /** Never left out: nothing of another scope is found, counted or hinted at. */
  readonly visible: Visible;
  /** Within one session, or one tree. */
  readonly sessionId: string | null;
  readonly rootId: string | null;
  readonly sort: "relevance" | "newest";
  readonly limit: number;
  /** From when the age of an entry counts: the same for every page of one search. */
  readonly now: number;
  /** Where an earlier page ended; null to begin. */
  readonly from: SearchPosition | null;
}

/** How many to leave out of what is older than a time. What came after the first page is on none. */
export interface SearchPosition {
  readonly offset: number;
  readonly below: number;
  /** The entry after which it goes on, as its store names it. */
  readonly past: string | null;
}

export interface EntryFound {
  readonly hits: readonly EntryHit[];
  /** Where the next page begins; null where there is none. */
  readonly next: SearchPosition | null;
  /** Null where there are more than were counted. */
  readonly total: number | null;
  /** False while entries of an older version are still being indexed. */
  readonly isWhole: boolean;
  /** Where nothing was found: words that may have been meant. */
  readonly near: readonly { readonly word: string; readonly instead: string }[];
}

export interface EntryHit extends Pick<
  EntryRecord,
  "rootId" | "sessionId" | "index" | "turnId" | "author" | "kind" | "at"
> {
  readonly shortId: string;
  readonly name: string | null;
  readonly agent: string;
  /** Names, or short ids, from the root down to the session itself. */
  readonly lineage: readonly string[];
  readonly turnIndex: number | null;
  /** It is still being written. */
  readonly open?: boolean;
  readonly snippet: Snippet;
}
