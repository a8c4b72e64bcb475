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

/** What a surface knows about one call beside its input. */
export interface Call {
  /** Aborted when the caller has gone; a wait then ends and takes nothing. */
  readonly signal: AbortSignal;
  /** The call's own id where the protocol has one (an MCP request id): a spawn's key without a name. */
  readonly callId: string | null;
}

/**
 * A caller with everything an operation needs to know about it, read once when its token was looked up. A read is
 * decided by it. A write reads again, under the tree's lock, what may have changed since: see `refuseGone`.
 */
export type CallerContext = Caller & {
  /** The caller's own session; null for a person and an API key. */
  readonly self: SessionRecord | null;
  /** The scopes whose sessions it sees. */
  readonly visible: Visible;
  /** Which of Kinfold's tools it is shown; the same for the life of a session. */
  readonly role: ToolRole;
  /** Those of Kinfold's tools that its profile or parent keeps from it. */
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

/** What the server needs beside the operations. */
export interface Gate {
  /** The caller a token stands for, or null. A session's token dies with its lease. */
  identify(token: string): Promise<CallerContext | null>;
  /** A reply that carried these messages did not arrive: they go back to their place. */
  giveBack(caller: Caller, messageIds: readonly string[]): Promise<void>;
  /** A reply to a spawn could not be delivered: an equal spawn within ten minutes returns that child. */
  spawnReplyLost(caller: Caller, sessionId: string): Promise<void>;
  unread(caller: Caller): Promise<number>;
  /** How many writes wait for the store. Answered from memory. */
  writesWaiting(): number;
  /** Numbered events from a point onward, then live. */
  feed(caller: CallerContext, request: FeedRequest): Feed;
}

export interface FeedRequest {
  /** An opaque cursor as an earlier batch gave it; null starts with what comes from now on. */
  readonly after: string | null;
  readonly tree: string | null;
  readonly session: string | null;
  readonly signal: AbortSignal;
}

/** Iterates for ever; ends when the signal is aborted. Rejects with `feed_reset` on a cursor it cannot serve. */
export type Feed = AsyncIterable<FeedBatch>;

export interface FeedBatch {
  /** Where to resume after this batch. */
  readonly cursor: string;
  readonly events: readonly Event[];
  readonly fragments: readonly Fragment[];
}
