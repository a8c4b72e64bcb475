/**
 * The states of an agent slot: one agent process on this node and the turn that it is in.
 *
 *     starting ──started──▶ prompting ──settled──▶ idle ──begin──▶ prompting
 *        ▲                   │     │                │
 *        └─────restart───────┘    stop             end, exited
 *                                  ▼                ▼
 *                               stopping ──end──▶ ending ──ended──▶ gone
 *
 * `end` leads from every phase to `ending`. A slot is `gone` when its process has ended and it has no turn
 * left to settle. An event that names a turn or an agent is refused once another turn or agent has replaced
 * the named one.
 */
export type Slot<A, T> =
  | {
      readonly phase: "starting";
      readonly turn: T;
      /** A limit that was exceeded before there was an agent to stop. */
      readonly limit: Limit | null;
    }
  | {
      readonly phase: "prompting";
      readonly agent: A;
      readonly turn: T;
      readonly limit: Limit | null;
      /** The plan was sent back for changes. If the agent then reports `cancelled`, that is a normal end. */
      readonly isPlanSentBack: boolean;
    }
  | { readonly phase: "stopping"; readonly agent: A; readonly turn: T; readonly limit: Limit | null }
  | {
      readonly phase: "idle";
      readonly agent: A;
      /**
       * When the agent became idle. Null while a turn is being claimed, and while the agent works unprompted,
       * until that work is given a turn.
       */
      readonly since: number | null;
      /**
       * A turn is being claimed. Until that is done, neither a long idle time nor the agent's exit ends the
       * slot.
       */
      readonly isClaimed: boolean;
      /** Background work that the last turn started is still running. */
      readonly hasBackground: boolean;
    }
  | {
      readonly phase: "ending";
      /** Null before the agent has started and after it has ended. */
      readonly agent: A | null;
      readonly unsettled: Unsettled<T> | null;
      readonly hasEnded: boolean;
      readonly left: readonly LeftProcess[];
    }
  | { readonly phase: "gone"; readonly left: readonly LeftProcess[] };

export type SlotPhase = Slot<unknown, unknown>["phase"];

/** Why a running turn is stopped: its budget is exhausted, or its agent is silent. */
export interface Limit {
  readonly reason: string;
  readonly kind: "budget" | "silence";
}

/** A turn whose process is ending and whose outcome is not recorded yet. */
export interface Unsettled<T> {
  readonly turn: T;
  readonly limit: Limit | null;
  readonly isStopped: boolean;
}

export interface LeftProcess {
  readonly pid: number;
  readonly startTime: number | null;
  readonly command: string;
}

export type SlotEvent<A, T> =
  /** A turn was claimed, or was recorded for work that the agent began without a prompt. */
  | { readonly type: "begin"; readonly turn: T }
  | { readonly type: "started"; readonly agent: A }
  /** The turn's agent is gone; another one starts. */
  | { readonly type: "restart"; readonly turn: T }
  | { readonly type: "stop"; readonly turn: T }
  | { readonly type: "limit"; readonly turn: T; readonly limit: Limit }
  | { readonly type: "plan"; readonly turn: T; readonly isSentBack: boolean }
  | { readonly type: "settled"; readonly turn: T; readonly hasBackground: boolean; readonly at: number }
  | { readonly type: "claim" }
  | { readonly type: "releaseClaim"; readonly at: number }
  /** The idle agent has begun to work without a prompt. */
  | { readonly type: "beginAutonomous" }
  /** The idle agent worked without a prompt, but no turn was recorded for that work. */
  | { readonly type: "dropAutonomous"; readonly at: number }
  | { readonly type: "backgroundOver" }
  | { readonly type: "exited"; readonly agent: A }
  | { readonly type: "end" }
  /** The process ends, and its turn stays open for recovery. */
  | { readonly type: "release" }
  | { readonly type: "ended"; readonly left: readonly LeftProcess[] };

export type Evolved<A, T> =
  | { readonly ok: true; readonly slot: Slot<A, T> }
  | { readonly ok: false; readonly why: string };

/** Side effects that the caller carries out after a slot has changed. */
export type SlotEffect = "askToStop" | "forgetStop" | "waitIdle" | "forgetIdle" | "endProcess" | "leave";

export function newSlot<T>(turn: T): Slot<never, T> {
  return { phase: "starting", turn, limit: null };
}

export function evolve<A, T>(slot: Slot<A, T>, event: SlotEvent<A, T>): Evolved<A, T> {
  switch (event.type) {
    case "begin":
      return begin(slot, event.turn);
    case "started":
      return started(slot, event.agent);
    case "restart":
    case "stop":
    case "limit":
    case "plan":
    case "settled":
      return turnOf(slot) === event.turn ? evolveTurn(slot, event) : no("the slot is not in this turn");
    case "claim":
    case "releaseClaim":
    case "beginAutonomous":
    case "dropAutonomous":
    case "backgroundOver":
      return slot.phase === "idle" ? evolveIdle(slot, event) : no("the slot is not idle");
    case "exited":
      return exited(slot, event.agent);
    case "end":
      return end(slot);
    case "release":
      return release(slot);
    case "ended":
      return ended(slot, event.left);
  }
}

export function turnOf<T>(slot: Slot<unknown, T>): T | null {
  if (slot.phase === "ending") return slot.unsettled?.turn ?? null;
  return slot.phase === "idle" || slot.phase === "gone" ? null : slot.turn;
}

export function agentOf<A>(slot: Slot<A, unknown>): A | null {
  return slot.phase === "starting" || slot.phase === "gone" ? null : slot.agent;
}

export function limitOf(slot: Slot<unknown, unknown>): Limit | null {
  if (slot.phase === "ending") return slot.unsettled?.limit ?? null;
  return slot.phase === "idle" || slot.phase === "gone" ? null : slot.limit;
}

/** Returns the effects in the order in which they must be carried out. */
export function effectsOf(before: Slot<unknown, unknown>, after: Slot<unknown, unknown>): SlotEffect[] {
  const effects: SlotEffect[] = [];
  const [wasIdle, isIdle] = [idleSince(before), idleSince(after)];
  const enters = (phase: SlotPhase): boolean => after.phase === phase && before.phase !== phase;
  if (before.phase === "stopping" && after.phase !== "stopping") effects.push("forgetStop");
  if (wasIdle !== null && wasIdle !== isIdle) effects.push("forgetIdle");
  if (enters("stopping")) effects.push("askToStop");
  if (isIdle !== null && wasIdle !== isIdle) effects.push("waitIdle");
  if (enters("ending")) effects.push("endProcess");
  if (enters("gone")) effects.push("leave");
  return effects;
}

function idleSince(slot: Slot<unknown, unknown>): number | null {
  return slot.phase === "idle" ? slot.since : null;
}

function begin<A, T>(slot: Slot<A, T>, turn: T): Evolved<A, T> {
  switch (slot.phase) {
    case "idle":
      return yes({ phase: "prompting", agent: slot.agent, turn, limit: null, isPlanSentBack: false });
    case "ending":
      if (slot.unsettled !== null) return no("the slot is in another turn");
      // The turn's row was written before the slot began to end, so the turn must be settled.
      return yes({ ...slot, unsettled: { turn, limit: null, isStopped: false } });
    case "gone":
      return no("the slot is gone; recovery takes the turn up");
    default:
      return no("the slot is in another turn");
  }
}

function started<A, T>(slot: Slot<A, T>, agent: A): Evolved<A, T> {
  const { phase } = slot;
  if (phase === "starting") {
    const { turn, limit } = slot;
    return yes({ phase: "prompting", agent, turn, limit, isPlanSentBack: false });
  }
  // The agent started after the slot began to end, so it ends with the slot.
  if (phase === "ending" && slot.agent === null && !slot.hasEnded) return yes({ ...slot, agent });
  return no("the slot does not wait for an agent");
}

type TurnEvent<T> = SlotEvent<never, T> & { type: "restart" | "stop" | "limit" | "plan" | "settled" };

function evolveTurn<A, T>(slot: Slot<A, T>, event: TurnEvent<T>): Evolved<A, T> {
  switch (event.type) {
    case "restart":
      if (slot.phase !== "prompting") return no("the turn is being stopped, or has no agent to replace");
      return yes({ phase: "starting", turn: slot.turn, limit: slot.limit });
    case "stop":
      return stop(slot, null);
    case "limit":
      return limited(slot, event.limit);
    case "plan":
      if (slot.phase !== "prompting") return no("the turn is not at work");
      return yes({ ...slot, isPlanSentBack: event.isSentBack });
    case "settled":
      return settled(slot, event);
  }
}

function stop<A, T>(slot: Slot<A, T>, limit: Limit | null): Evolved<A, T> {
  if (slot.phase === "prompting") {
    const { agent, turn } = slot;
    return yes({ phase: "stopping", agent, turn, limit: slot.limit ?? limit });
  }
  return no(slot.phase === "starting" ? "there is no agent to ask yet" : "the turn is being stopped already");
}

/** Only the first limit counts: it is the reason for the turn's failure. */
function limited<A, T>(slot: Slot<A, T>, limit: Limit): Evolved<A, T> {
  switch (slot.phase) {
    case "prompting":
      return stop(slot, limit);
    case "starting":
    case "stopping":
      return yes({ ...slot, limit: slot.limit ?? limit });
    case "ending": {
      const { unsettled } = slot;
      if (unsettled === null) return no("the slot is in no turn");
      return yes({ ...slot, unsettled: { ...unsettled, limit: unsettled.limit ?? limit } });
    }
    default:
      return no("the slot is in no turn");
  }
}

function settled<A, T>(slot: Slot<A, T>, event: SlotEvent<never, T> & { type: "settled" }): Evolved<A, T> {
  switch (slot.phase) {
    case "prompting":
    case "stopping": {
      const { hasBackground, at: since } = event;
      return yes({ phase: "idle", agent: slot.agent, since, isClaimed: false, hasBackground });
    }
    case "ending":
      return yes(over({ ...slot, unsettled: null }));
    default:
      return no("a slot without an agent ends before its turn settles");
  }
}

type IdleEvent = SlotEvent<never, never> & {
  type: "claim" | "releaseClaim" | "beginAutonomous" | "dropAutonomous" | "backgroundOver";
};

function evolveIdle<A, T>(slot: Slot<A, T> & { phase: "idle" }, event: IdleEvent): Evolved<A, T> {
  switch (event.type) {
    case "claim":
      return slot.isClaimed ? no("it is being claimed") : yes({ ...slot, since: null, isClaimed: true });
    case "releaseClaim":
      return slot.isClaimed ? yes({ ...slot, since: event.at, isClaimed: false }) : no("it was not claimed");
    case "beginAutonomous":
      return yes({ ...slot, since: null });
    case "dropAutonomous":
      return slot.isClaimed ? no("it is being claimed") : yes({ ...slot, since: event.at });
    case "backgroundOver":
      return yes({ ...slot, hasBackground: false });
  }
}

function exited<A, T>(slot: Slot<A, T>, agent: A): Evolved<A, T> {
  if (slot.phase !== "idle") return no("the slot is not idle");
  if (slot.agent !== agent) return no("another agent has replaced it");
  return slot.isClaimed ? no("it is being claimed") : end(slot);
}

function end<A, T>(slot: Slot<A, T>): Evolved<A, T> {
  if (slot.phase === "ending" || slot.phase === "gone") return no("the slot is ending already");
  const turn = turnOf(slot);
  const isStopped = slot.phase === "stopping";
  const unsettled = turn === null ? null : { turn, limit: limitOf(slot), isStopped };
  return yes({ phase: "ending", agent: agentOf(slot), unsettled, hasEnded: false, left: [] });
}

function release<A, T>(slot: Slot<A, T>): Evolved<A, T> {
  if (slot.phase === "gone") return no("the slot is gone");
  const ending = end(slot);
  const now = ending.ok ? ending.slot : slot;
  return now.phase === "ending" ? yes(over({ ...now, unsettled: null })) : ending;
}

function ended<A, T>(slot: Slot<A, T>, left: readonly LeftProcess[]): Evolved<A, T> {
  if (slot.phase !== "ending" || slot.hasEnded) return no("no process of it is ending");
  return yes(over<A, T>({ ...slot, agent: null, hasEnded: true, left }));
}

/** A slot stays until its turn has settled; without a slot, recovery would treat the turn as lost. */
function over<A, T>(slot: Slot<A, T> & { phase: "ending" }): Slot<A, T> {
  return slot.hasEnded && slot.unsettled === null ? { phase: "gone", left: slot.left } : slot;
}

function yes<A, T>(slot: Slot<A, T>): Evolved<A, T> {
  return { ok: true, slot };
}

function no(why: string): { ok: false; why: string } {
  return { ok: false, why };
}
