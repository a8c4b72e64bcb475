import type { EntrySearch, SearchPosition } from "../../search/plan.ts";
import type { Snippet } from "../../search/snippet.ts";
import type { EntryRecord } from "./record.ts";

export type { EntrySearch, SearchPosition };

export interface EntryFound {
  readonly hits: readonly EntryHit[];
  /** The position at which the next page begins; null if there is no next page. */
  readonly next: SearchPosition | null;
  /** The number of matches; null if there are more than were counted. */
  readonly total: number | null;
  /** False while older entries are still being indexed. */
  readonly isWhole: boolean;
  /** If nothing was found: similar words that exist. */
  readonly near: readonly { readonly word: string; readonly instead: string }[];
}

export interface EntryHit extends Pick<
  EntryRecord,
  "rootId" | "sessionId" | "index" | "turnId" | "author" | "kind" | "at"
> {
  readonly shortId: string;
  readonly name: string | null;
  readonly agent: string;
  /** The names from the root down to this session. A session without a name is shown by its short id. */
  readonly lineage: readonly string[];
  readonly turnIndex: number | null;
  /** True while the entry is still being written. */
  readonly open?: boolean;
  readonly snippet: Snippet;
}
