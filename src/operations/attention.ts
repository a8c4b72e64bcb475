import type { Caller, WaitChildrenOutput } from "../contract/index.ts";
import { shortId } from "../contract/index.ts";
import { triggerBody } from "../kernel/trigger-body.ts";
import type { SessionRecord, TriggerRecord } from "../store/port.ts";
import { carrierOf } from "./carrying.ts";
import type { OperationDeps } from "./deps.ts";
import { isBelow } from "./resolve.ts";

export type Attention = WaitChildrenOutput["needsYou"][number] & { takenId: string | null };

/** What asks the caller from below these sessions and has not been shown to this wait before. */
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
  return fresh;
}

/** Carried by this reply where it still waits in the inbox; else it is told again, as it stands. */
export async function takeAttention(
  deps: OperationDeps,
  caller: Caller & { kind: "session" },
  self: SessionRecord,
  triggers: readonly TriggerRecord[],
): Promise<Attention[]> {
  if (triggers.length === 0) return [];
  return deps.store.write(self.rootId, async (tx) => {
    const carrier = await carrierOf(tx, caller);
    const messages = await tx.messages.ofSession(self.id, ["queued", "taken", "landed"]);
    const found: Attention[] = [];
    for (const trigger of triggers) {
      const session = await tx.sessions.byId(trigger.sessionId);
      const message = messages.find((each) => each.metadata["triggerId"] === trigger.id);
      if (session === null || message === undefined) continue;
      const at = deps.now();
      const patch = { status: "taken", carrier: "tool", turnId: carrier?.turnId ?? null, takenAt: at } as const;
      const wasTaken = carrier !== null && (await tx.messages.move(message.id, ["queued"], patch));
      const what = message.body ?? (await triggerBody(tx, self, message)) ?? "";
      const { id: sessionId, name } = session;
      found.push({
        sessionId,
        name,
        what,
        triggerId: trigger.id,
        deliveryId: message.deliveryId,
        takenId: wasTaken ? message.id : null,
      });
    }
    return found;
  });
}

async function isUnder(deps: OperationDeps, sessionId: string, ids: readonly string[]): Promise<boolean> {
  const session = await deps.store.read.sessions.byId(sessionId);
  if (session === null) return false;
  for (const id of ids) if (await isBelow(deps.store.read, session, id)) return true;
  return false;
}
