import type { SessionRecord } from "../store/port/store.ts";
import type {
  Caller,
  Event,
  Fragment,
  InputOf,
  OperationName,
  OutputOf,
  ToolRole,
} from "../contract/index.ts";
import type { Visible } from "../domain/permission.ts";

/** What a surface knows about one call besides its input. */
export interface Call {
  /** Aborted when the caller has gone; a wait then ends and takes no messages. */
  readonly signal: AbortSignal;
  /** The call's id, if the protocol has one. A spawn without a name uses it as its idempotency key. */
  readonly callId: string | null;
}

/**
 * A caller with everything that is known about it, read once when its token was looked up. Operations that
 * only read rely on this data. Operations that write check again, under the tree's lock, what may have
 * changed: see `refuseGone`.
 */
export type CallerContext = Caller & {
  /** The caller's session; null for a person and an API key. */
  readonly self: SessionRecord | null;
  /** The scopes whose sessions the caller sees. */
  readonly visible: Visible;
  /** Which list of Kinfold's tools the caller sees. A role only shortens the list; it takes away no right. */
  readonly role: ToolRole;
  /** Kinfold's tools that the caller's profile or parent withholds from it. */
  readonly withheld: readonly string[];
};

/** One function per row of the operation table. Each rejects only with a `Refusal` or a bug. */
export type Operations = {
  readonly [N in OperationName]: (
    caller: CallerContext,
    input: InputOf<N>,
    call: Call,
  ) => Promise<OutputOf<N>>;
};

/** What the server needs besides the operations. */
export interface Gate {
  /** Returns the caller that a token belongs to, or null. A session's token expires with its lease. */
  identify(token: string): Promise<CallerContext | null>;
  /** Puts messages back into the inbox, because the reply that carried them did not arrive. */
  giveBack(caller: Caller, messageIds: readonly string[]): Promise<void>;
  /** Records that a spawn's reply was lost, so an equal spawn within ten minutes returns the same child. */
  spawnReplyLost(caller: Caller, sessionId: string): Promise<void>;
  unread(caller: Caller): Promise<number>;
  /** Number of writes that wait for the store. The number is in memory, so the store is not asked. */
  writesWaiting(): number;
  /** Yields the numbered events after the request's cursor, then live events. */
  feed(caller: CallerContext, request: FeedRequest): Feed;
}

export interface FeedRequest {
  /** An opaque cursor from an earlier batch. If it is null, the feed has only events from now on. */
  readonly after: string | null;
  readonly tree: string | null;
  readonly session: string | null;
  readonly signal: AbortSignal;
}

/** Iterates until the signal is aborted. Rejects with `feed_reset` if it cannot resume from the cursor. */
export type Feed = AsyncIterable<FeedBatch>;

export interface FeedBatch {
  /** Cursor from which to resume after this batch. */
  readonly cursor: string;
  readonly events: readonly Event[];
  readonly fragments: readonly Fragment[];
}
