import { dropPlace, endPlace, goIdle } from "../agent/stop.ts";
import type { Place, Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";
import { settle, type TurnEnd } from "./settle.ts";
import { endSteering } from "./steer.ts";

/** Settles and leaves the place as the outcome wants it: idle, or ended with its process. */
export async function endTurn(
  runtime: Runtime,
  place: Place,
  recorder: Recorder,
  end: TurnEnd,
): Promise<void> {
  // Detached from its place, the turn stays open: the next start, or a new lease, takes it up.
  const isOurs = (): boolean => place.recorder === recorder;
  if (!isOurs()) return;
  await endSteering(place, recorder);
  // Where the agent is gone, its process tree ends before the outcome is written.
  if (place.agent === null || place.agent.hasExited || place.isEnding) await endPlace(runtime, place);
  if (!isOurs()) return;
  const isSettled = await settle(
    runtime.deps,
    recorder,
    { ...withinLimit(place, end), left: place.left },
    isOurs,
  );
  if (!isOurs()) return;
  place.recorder = null;
  place.isStopping = false;
  place.overLimit = null;
  place.hasBackground = end.background;
  if (isSettled && !place.isEnding) {
    goIdle(runtime, place);
  } else {
    await endPlace(runtime, place);
    dropPlace(runtime, place);
  }
  runtime.fill();
}

/** A turn that was stopped at its budget has failed, unless it had ended by itself before. */
function withinLimit(place: Place, end: TurnEnd): TurnEnd {
  if (place.overLimit === null || end.stopReason === "end_turn") return end;
  const { reason, kind } = place.overLimit;
  return { ...end, outcome: "failed", reason, errorKind: kind };
}
