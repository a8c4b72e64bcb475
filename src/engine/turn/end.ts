import type { AgentSlot, Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";
import { settle, type TurnEnd } from "./settle.ts";
import { endSteering } from "./steer.ts";

/** Settles a turn. Its slot is idle afterwards, or ends. */
export async function endTurn(
  runtime: Runtime,
  slot: AgentSlot,
  { recorder, end }: { recorder: Recorder; end: TurnEnd },
): Promise<void> {
  // A turn whose slot was released stays open: the next start, or a new lease, takes it up.
  const isOurs = (): boolean => slot.isIn(recorder);
  if (!isOurs()) return;
  await endSteering(slot, recorder);
  // Where the agent is gone, its process tree ends before the outcome is written.
  if (slot.agent === null || slot.agent.hasExited || slot.isEnding) await slot.end();
  if (!isOurs()) return;
  const isSettled = await settle(runtime.deps, recorder, {
    end: { ...withinLimit(slot, end), left: slot.left },
    isWanted: isOurs,
  });
  if (!isOurs()) return;
  if (isSettled) slot.settled(recorder, end.background);
  else await slot.release();
  if (slot.isEnding) await slot.end();
  runtime.fill();
}

/** A turn that was stopped at its budget has failed, unless it had ended by itself before. */
function withinLimit(slot: AgentSlot, end: TurnEnd): TurnEnd {
  if (slot.limit === null || end.stopReason === "end_turn") return end;
  const { reason, kind } = slot.limit;
  return { ...end, outcome: "failed", reason, errorKind: kind };
}
