import type { HistoryReader, LiveSession, SessionFacts } from "../port.ts";
import { type Liveness, NOT_KNOWN_ALIVE } from "./status.ts";

/** Whether a session's process is alive, according to the agent's own registry. */
export function livenessOf(
  reader: Pick<HistoryReader, "listsLive">,
  facts: SessionFacts,
  listed: readonly LiveSession[],
): Liveness {
  const own = listed.filter(({ id }) => id === facts.id);
  const best = own.find(({ alive }) => alive === true) ?? own.find(({ alive }) => alive === null) ?? own[0];
  if (best !== undefined) {
    const { alive, doing, startedAt, how } = best;
    return { alive, doing, startedAt, how };
  }
  if (reader.listsLive?.(facts) !== true) return NOT_KNOWN_ALIVE;
  return { ...NOT_KNOWN_ALIVE, alive: false, isAbsent: true, how: "no process of the agent works on it" };
}
