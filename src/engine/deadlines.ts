import type { Answer } from "../contract/index.ts";
import { askPerson, closeTrigger } from "../kernel/trigger.ts";
import type { TriggerRecord, Tx } from "../store/port/store.ts";
import type { EngineDeps } from "./deps.ts";

/**
 * Grace period after a start of the daemon: until it is over, no deadline passes, so that people and parents
 * have time to come back.
 */
const GRACE_MS = 60_000;

/** For each question whose deadline has passed: asks a person too, or answers with the stated default. */
export async function passDeadlines(deps: EngineDeps, startedAt: number): Promise<void> {
  const now = deps.now();
  if (now - startedAt < Math.min(GRACE_MS, deps.config.triggers.parentMs)) return;
  for (const trigger of await deps.store.read.triggers.due(now)) {
    // No fence: the process that asked may be gone. The check of `status` prevents closing a question twice.
    await deps.store.write(trigger.rootId, async (tx) => {
      const fresh = await tx.triggers.byId(trigger.id);
      if (fresh === null || fresh.status !== "open") return;
      if (fresh.defaultAt !== null && fresh.defaultAt <= now) {
        await closeTrigger(tx, fresh, { status: "defaulted", answer: defaultOf(fresh, now), now });
      } else if (!fresh.toPerson && fresh.personAt !== null && fresh.personAt <= now) {
        await askPerson(tx, fresh, now);
      }
    });
  }
}

/** Postpones open deadlines by time that does not count: the machine slept, or no daemon was running. */
export async function moveDeadlines(tx: Tx, triggers: readonly TriggerRecord[], byMs: number): Promise<void> {
  for (const { id } of triggers) {
    const fresh = await tx.triggers.byId(id);
    if (fresh === null || fresh.status !== "open") continue;
    const isPast = fresh.toPerson || fresh.personAt === null;
    const personAt = isPast ? fresh.personAt : fresh.personAt! + byMs;
    const defaultAt = fresh.defaultAt === null ? null : fresh.defaultAt + byMs;
    await tx.triggers.patch(id, { personAt, defaultAt });
  }
}

function defaultOf(trigger: TriggerRecord, now: number): Answer {
  const asked = trigger.type === "escalate" ? trigger.payload["originalType"] : trigger.type;
  const isPermission = asked === "permission";
  return {
    by: isPermission ? "nobody in time: denied" : "nobody in time: the stated default",
    callerId: null,
    action: isPermission ? "deny" : null,
    response: isPermission ? null : trigger.default,
    answers: null,
    at: now,
  };
}
