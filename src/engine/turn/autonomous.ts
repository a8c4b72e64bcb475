import type { AgentUpdate } from "../../drivers/port.ts";
import { STALE, type TurnRecord } from "../../store/port/store.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";
import { reserveBegun } from "../usage/reservation.ts";
import { endTurn, type TurnEnd } from "./settle.ts";
import { openRound } from "../../kernel/admit.ts";
import { newTurn } from "./claim.ts";

/** Agents do not report the end of work outside a prompt. This long without an update counts as the end. */
const QUIET_MS = 1_500;

/** Updates that do not count as work. */
const SILENT = new Set<AgentUpdate["kind"]>(["usage", "modelCall", "retrying", "notice", "fragment"]);

/** Updates that arrived before their turn's row was written. */
const gathering = new WeakMap<AgentSlot, AgentUpdate[]>();

/** Opens an autonomous turn for updates that arrive outside a prompt. */
export function autonomous(runtime: Runtime, slot: AgentSlot, update: AgentUpdate): void {
  if (SILENT.has(update.kind)) return;
  const early = gathering.get(slot);
  if (early !== undefined) {
    early.push(update);
    return;
  }
  gathering.set(slot, [update]);
  slot.beginAutonomous();
  slot.follow(begin(runtime, slot, slot.task));
}

export function takeEarly(slot: AgentSlot): AgentUpdate[] {
  const early = gathering.get(slot) ?? [];
  gathering.delete(slot);
  return early;
}

/** Begins the autonomous turn, after the previous turn (`before`) has settled. */
async function begin(runtime: Runtime, slot: AgentSlot, before: Promise<void> | null): Promise<void> {
  await before;
  slot.beginAutonomous();
  const added = slot.isEnding ? null : await addTurn(runtime, slot);
  if (added === null) {
    notOurs(slot);
    return;
  }
  const recorder = slot.begin(added.turn);
  if (recorder === null) return;
  for (const update of takeEarly(slot)) recorder.record(update);
  await quiet(recorder);
  await endTurn(runtime, slot, { recorder, end: await endOf(slot, added.since) });
}

/** Gives the early updates to the turn of a prompt that came first. If there is none, drops them. */
function notOurs(slot: AgentSlot): void {
  if (slot.isClaimed) return;
  for (const update of takeEarly(slot)) slot.recorder?.record(update);
  slot.dropAutonomous();
}

async function quiet(recorder: Recorder): Promise<void> {
  for (let seen = -1; seen !== recorder.recorded;) {
    seen = recorder.recorded;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }
}

async function endOf(slot: AgentSlot, since: number): Promise<TurnEnd> {
  const { agent } = slot;
  // An autonomous turn has no prompt that the agent could answer.
  const reach: TurnEnd["reach"] = "unanswered";
  if (agent === null || slot.hasExited(agent)) {
    const reason = "the agent process exited while it went on by itself";
    return { stopReason: "exited", reach, reason, usage: null, background: false };
  }
  const end = { reach, reason: null, usage: null };
  if (slot.isStopping) return { ...end, stopReason: "cancelled", background: false };
  const background = await agent.background(since);
  return { ...end, stopReason: "end_turn", background };
}

async function addTurn(
  runtime: Runtime,
  slot: AgentSlot,
): Promise<{ turn: TurnRecord; since: number } | null> {
  const { deps } = runtime;
  const added = await slot.write(async (tx) => {
    const session = await tx.sessions.byId(slot.session.id);
    if (session === null || session.endedAt !== null) return null;
    if ((await tx.turns.running(session.id)) !== null) return null;
    const now = deps.now();
    // After a failure or a stop, the inbox is held. Autonomous work is then recorded, but it opens no round.
    if (session.held === null) await openRound(tx, session, now);
    const reserved = await reserveBegun(deps, tx, session);
    const decided = { kind: "autonomous", description: "went on by itself", ...reserved } as const;
    const turn = await tx.turns.add(newTurn(deps, session, { ...decided, fence: slot.lease.fence }));
    const data = { turnId: turn.id, index: turn.index, round: turn.round, kind: "autonomous" };
    tx.append({ sessionId: session.id, type: "turn.started", data, at: now });
    return { turn, since: session.roundOpenedAt ?? now };
  });
  return added === STALE ? null : added;
}
