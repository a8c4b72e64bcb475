import type { Attention as Asked } from "../../contract/index.ts";
import { shortId } from "../../contract/short-id.ts";
import { parkedError } from "../../kernel/park.ts";
import { startClock, triggerBody } from "../../kernel/trigger.ts";
import type { SessionRecord, TriggerRecord, Tx } from "../../store/port/store.ts";
import { replyCarrier, takeIntoReply } from "./reply-carrier.ts";
import type { OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { isBelow } from "../access/resolve.ts";

export type Attention = Asked & { takenId: string | null };

/**
 * Returns triggers that the caller must see: open triggers addressed to it, and errors of parked sessions.
 * Considers only the sessions in `ids` and their descendants. Leaves out triggers already shown.
 */
export async function asking(
  deps: OperationDeps,
  self: SessionRecord,
  of: { ids: readonly string[]; shown: readonly string[] },
): Promise<TriggerRecord[]> {
  const open = await deps.store.read.triggers.open({ toId: self.id });
  const fresh: TriggerRecord[] = [];
  for (const trigger of open) {
    if (of.shown.includes(shortId(trigger.id))) continue;
    if (of.ids.includes(trigger.sessionId) || (await isUnder(deps, trigger.sessionId, of.ids)))
      fresh.push(trigger);
  }
  return [...fresh, ...(await parkedBelow(deps, self, of))];
}

/** Returns errors of parked sessions in `ids` or below them. Leaves out errors that the caller received. */
async function parkedBelow(
  deps: OperationDeps,
  self: SessionRecord,
  of: { ids: readonly string[]; shown: readonly string[] },
): Promise<TriggerRecord[]> {
  const { read } = deps.store;
  const fresh: TriggerRecord[] = [];
  for (const session of await read.sessions.parkedIn(self.rootId)) {
    const isBelowThem = of.ids.includes(session.id) || (await isUnder(deps, session.id, of.ids));
    const error = isBelowThem ? await parkedError(read, session) : null;
    if (error === null || of.shown.includes(shortId(error.id))) continue;
    const received = await read.messages.ofSession(self.id, ["taken", "landed"]);
    if (!received.some((message) => message.metadata["triggerId"] === error.id)) fresh.push(error);
  }
  return fresh;
}

/** Takes the triggers' messages from the inbox into this reply. Also returns messages taken before. */
export async function takeAttention(
  deps: OperationDeps,
  caller: CallerContext & { kind: "session" },
  { self, triggers }: { self: SessionRecord; triggers: readonly TriggerRecord[] },
): Promise<Attention[]> {
  if (triggers.length === 0) return [];
  return deps.store.write(self.rootId, async (tx) => {
    const carrier = await replyCarrier(tx, caller);
    const messages = await tx.messages.ofSession(self.id, ["queued", "taken", "landed"]);
    const found: Attention[] = [];
    for (const trigger of triggers) {
      const session = await tx.sessions.byId(trigger.sessionId);
      const message = messages.find((each) => each.metadata["triggerId"] === trigger.id);
      if (session === null) continue;
      if (message === undefined) {
        if (trigger.type === "session_error")
          found.push(await withoutMessage(tx, self, { session, trigger }));
        continue;
      }
      const now = deps.now();
      const wasTaken = await takeIntoReply(tx, message, { carrier, now });
      // The question has entered the turn of the session that must answer, so the time to answer starts.
      if (wasTaken) await startClock(tx, message, { parentMs: deps.config.triggers.parentMs, now });
      const what = message.body ?? (await triggerBody(tx, self, message)) ?? "";
      const { id: sessionId, name } = session;
      found.push({
        sessionId,
        name,
        what,
        type: trigger.type,
        triggerId: trigger.id,
        deliveryId: message.deliveryId,
        takenId: wasTaken ? message.id : null,
      });
    }
    return found;
  });
}

/**
 * Only the parent of a parked session gets a message about the error. For an ancestor further up, this
 * renders the text directly from the trigger.
 */
async function withoutMessage(
  tx: Tx,
  self: SessionRecord,
  { session, trigger }: { session: SessionRecord; trigger: TriggerRecord },
): Promise<Attention> {
  const deliveryId = shortId(trigger.id);
  const what = await triggerBody(tx, self, {
    kind: "trigger",
    data: { type: trigger.type, payload: trigger.payload },
    deliveryId,
    repeated: false,
    senderId: session.id,
    metadata: {},
    admittedAt: trigger.createdAt,
  });
  const { id: sessionId, name } = session;
  const { id: triggerId, type } = trigger;
  return { sessionId, name, what: what ?? "", type, triggerId, deliveryId, takenId: null };
}

async function isUnder(deps: OperationDeps, sessionId: string, ids: readonly string[]): Promise<boolean> {
  const session = await deps.store.read.sessions.byId(sessionId);
  if (session === null) return false;
  for (const id of ids) if (await isBelow(deps.store.read, session, id)) return true;
  return false;
}
