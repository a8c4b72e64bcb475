import type { AgentUpdate } from "../drivers/port.ts";
import { newId } from "../kernel/id.ts";
import { openRound } from "../kernel/round.ts";
import type { TurnRecord } from "../store/port.ts";
import type { Place, Runtime } from "./place.ts";
import { Recorder } from "./recorder.ts";
import { reserveBegun } from "./reservation.ts";
import { settle } from "./settle.ts";
import { goIdle, leaveIdle } from "./leave.ts";

/** An agent gives no sign when work outside a prompt ends: so long without an update is its end. */
const QUIET_MS = 1_500;

/** Updates that came before their turn's row was written. */
const gathering = new WeakMap<Place, AgentUpdate[]>();

/** Updates outside a prompt open a turn of their own kind. */
export function autonomous(runtime: Runtime, place: Place, update: AgentUpdate): void {
  if (update.kind === "usage" || update.kind === "notice" || update.kind === "fragment") return;
  const waiting = gathering.get(place);
  if (waiting !== undefined) {
    waiting.push(update);
    return;
  }
  gathering.set(place, [update]);
  leaveIdle(place);
  place.task = begin(runtime, place).catch((error: unknown) => {
    runtime.deps.log.error(
      { err: error, sessionId: place.session.id },
      "an autonomous turn could not be kept",
    );
  });
}

async function begin(runtime: Runtime, place: Place): Promise<void> {
  const turn = await addTurn(runtime, place);
  const waiting = gathering.get(place);
  gathering.delete(place);
  if (turn === null || waiting === undefined || place.recorder !== null) return;
  const recorder = new Recorder(runtime.deps, turn, () => undefined);
  for (const update of waiting) recorder.record(update);
  place.recorder = recorder;
  await quiet(recorder);
  if (place.recorder !== recorder) return;
  await settle(runtime.deps, recorder, {
    stopReason: "end_turn",
    reason: null,
    usage: null,
    background: false,
  });
  place.recorder = null;
  place.isStopping = false;
  place.overLimit = null;
  if (!place.isEnding) goIdle(runtime, place);
  runtime.fill();
}

async function quiet(recorder: Recorder): Promise<void> {
  for (let seen = -1; seen !== recorder.recorded;) {
    seen = recorder.recorded;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }
}

async function addTurn(runtime: Runtime, place: Place): Promise<TurnRecord | null> {
  const { deps } = runtime;
  return deps.store.write(place.session.rootId, async (tx) => {
    const session = await tx.sessions.byId(place.session.id);
    if (session === null || session.endedAt !== null || session.fence !== place.hold.fence) return null;
    if ((await tx.turns.running(session.id)) !== null) return null;
    const now = deps.now();
    await openRound(tx, session, now);
    const reserved = await reserveBegun(deps, tx, session);
    const turn = await tx.turns.add({
      id: newId(),
      sessionId: session.id,
      round: session.round,
      kind: "autonomous",
      status: "running",
      node: deps.store.node,
      boot: deps.store.boot,
      fence: place.hold.fence,
      attempt: 1,
      description: "went on by itself",
      startedAt: now,
      settledAt: null,
      error: null,
      stopReason: null,
      lastAssistantMessage: null,
      entryFrom: session.entryCount,
      entryTo: null,
      toolUseCount: 0,
      usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null },
      ...reserved,
      receipt: null,
      blocked: 0,
      stopBy: null,
      stopNote: null,
    });
    const data = { turnId: turn.id, index: turn.index, round: turn.round, kind: "autonomous" };
    tx.append({ sessionId: session.id, type: "turn.started", text: null, data, at: now });
    return turn;
  });
}
