import type { TriggerRecord } from "../store/port/store.ts";
import { newId } from "../system/id.ts";

/** The row of a trigger that nobody has to answer: an end, an error, something fired. */
export function newTrigger(
  row: Pick<TriggerRecord, "sessionId" | "toId" | "type" | "payload" | "round"> & { now: number },
): Omit<TriggerRecord, "rootId"> {
  const { now, ...given } = row;
  return {
    id: newId(),
    toPerson: false,
    status: "open",
    personAt: null,
    defaultAt: null,
    default: null,
    originalId: null,
    context: null,
    answer: null,
    seenAt: null,
    fence: null,
    createdAt: now,
    closedAt: null,
    ...given,
  };
}
