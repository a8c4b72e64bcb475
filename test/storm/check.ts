import type { Event } from "../../src/contract/index.ts";
import { checkCallbacks } from "./check-callback.ts";
import { checkFeed } from "./check-feed.ts";
import { checkLife } from "./check-life.ts";
import { checkMessages } from "./check-message.ts";
import { checkTranscripts } from "./check-transcript.ts";
import type { Counts, Findings } from "./findings.ts";
import type { Journals } from "./journals.ts";
import type { Acknowledged, Cancelled } from "./people.ts";
import type { EventRow, MessageRow, SessionRow, Tables, TurnRow } from "./tables.ts";

/** Everything that is compared after a storm. */
export interface Evidence {
  readonly tables: Tables;
  readonly journals: Journals;
  /** The size of each journal at the end of the storm, in bytes. */
  readonly journalSizes: ReadonlyMap<string, number>;
  readonly feed: { readonly events: readonly Event[]; readonly resets: number };
  readonly acknowledged: readonly Acknowledged[];
  readonly cancelled: readonly Cancelled[];
  readonly counts: Counts;
  readonly findings: Findings;
}

/** The evidence with the lookups that every check needs. */
export interface Checking extends Evidence {
  readonly sessions: ReadonlyMap<string, SessionRow>;
  readonly turns: ReadonlyMap<string, TurnRow>;
  readonly messages: ReadonlyMap<string, MessageRow>;
  /** Sorted by tree, then by event number. */
  readonly events: readonly EventRow[];
}

export function checkAll(evidence: Evidence): void {
  const { tables } = evidence;
  const checking: Checking = {
    ...evidence,
    sessions: new Map(tables.sessions.map((each) => [each.id, each])),
    turns: new Map(tables.turns.map((each) => [each.id, each])),
    messages: new Map(tables.messages.map((each) => [each.id, each])),
    events: tables.events.toSorted((a, b) =>
      a.rootId === b.rootId ? a.seq - b.seq : a.rootId < b.rootId ? -1 : 1,
    ),
  };
  checkFeed(checking);
  checkLife(checking);
  checkCallbacks(checking);
  checkMessages(checking);
  checkTranscripts(checking);
}

/** Returns the fields that describe a message in a finding. */
export function messageDetail(checking: Checking, message: MessageRow): Record<string, unknown> {
  const session = checking.sessions.get(message.sessionId);
  const turn = message.turnId === null ? undefined : checking.turns.get(message.turnId);
  const got = checking.journals.got.get(message.deliveryId) ?? [];
  return {
    messageId: message.id,
    deliveryId: message.deliveryId,
    kind: message.kind,
    status: message.status,
    carrier: message.carrier,
    repeated: Boolean(message.repeated),
    voidReason: message.voidReason,
    session: session?.name,
    sessionId: message.sessionId,
    turn:
      turn === undefined
        ? null
        : [turn.idx, turn.status, turn.stopReason, `attempt ${turn.attempt}`].join(" "),
    journal: session?.agentSessionId,
    got: got.map((each) => `${each.by}${each.isMarked ? " marked" : ""} at ${each.at}`),
    history: historyOf(checking, message.id),
  };
}

function historyOf(checking: Checking, messageId: string): string[] {
  return checking.events
    .filter((event) => event.data["messageId"] === messageId)
    .map((event) => `${event.seq} ${event.type}${event.data["repeated"] === true ? " repeated" : ""}`);
}
