import { giveBack } from "../../kernel/admit.ts";
import { startClock } from "../../kernel/trigger.ts";
import { type MessageRecord, STALE, type TurnRecord } from "../../store/port/store.ts";
import { appendMessages, render } from "./claim.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";

/** How long the end of a turn waits for the agent to acknowledge a steered message. */
const ACK_MS = 2_000;

/** Sends queued steer messages into the running turn one by one, if the agent supports it. */
export async function steerQueued(runtime: Runtime, slot: AgentSlot): Promise<void> {
  if (slot.recorder !== null) await slot.steer(() => steerAll(runtime, slot));
}

/** Ends steering before a turn settles: sends no further message, and waits briefly for the current one. */
export async function endSteering(slot: AgentSlot, recorder: Recorder): Promise<void> {
  recorder.isOver = true;
  await slot.steered(ACK_MS);
}

async function steerAll(runtime: Runtime, slot: AgentSlot): Promise<void> {
  try {
    for (;;) {
      const message = await nextSteer(runtime, slot);
      if (message === null || !(await steerOne(runtime, slot, message))) return;
    }
  } catch (error) {
    runtime.deps.log.error({ err: error, sessionId: slot.session.id }, "steering a message failed");
  }
}

async function nextSteer(runtime: Runtime, slot: AgentSlot): Promise<MessageRecord | null> {
  if (slot.recorder === null || slot.recorder.isOver) return null;
  if (slot.agent === null || slot.isEnding || slot.isStopping) return null;
  const queued = await runtime.deps.store.read.messages.queued(slot.session.id, 50);
  const isWanted = (message: MessageRecord): boolean =>
    message.delivery === "steer" && message.metadata["delivered"] === undefined;
  return queued.find(isWanted) ?? null;
}

/**
 * Steers one message. Returns false if the turn accepts no more messages or has been taken over; the end of
 * the turn then decides about the message.
 */
async function steerOne(runtime: Runtime, slot: AgentSlot, message: MessageRecord): Promise<boolean> {
  const how = runtime.agents.get(slot.session.agent)?.steer ?? "none";
  const mayRestart = message.metadata["restart"] === true;
  if (how === "none" || (how === "restart" && !mayRestart)) {
    return note(runtime, slot, { message, delivered: "queued" });
  }
  const { agent, recorder } = slot;
  if (agent === null || recorder === null) return false;
  // If the turn settles before the agent has acknowledged the message, the message must not count as landed.
  recorder.unacknowledged.add(message.id);
  const text = await take(runtime, slot, { turn: recorder.turn, message });
  if (text === null) return false;
  runtime.deps.reached("steer.taken");
  const isTooLate = recorder.isOver || !slot.isIn(recorder);
  const result = isTooLate ? "refused" : await agent.steer(text);
  runtime.deps.reached("steer.sent");
  // The agent died before it acknowledged the message. Its own record shows whether the message arrived.
  if (result === "lost") return false;
  if (result === "refused") {
    await returnToQueue(runtime, slot, { turn: recorder.turn, message });
    return note(runtime, slot, { message, delivered: "queued" });
  }
  recorder.unacknowledged.delete(message.id);
  return note(runtime, slot, { message, delivered: result, into: { turn: recorder.turn, text } });
}

interface Steer {
  readonly turn: TurnRecord;
  readonly message: MessageRecord;
}

type Delivered = "injected" | "queued" | "restarted";

/** Marks the message as taken and returns the text to send; null if the turn has ended or was taken over. */
async function take(runtime: Runtime, slot: AgentSlot, { turn, message }: Steer): Promise<string | null> {
  const taken = await runtime.deps.store.write(message.rootId, slot.lease, async (tx) => {
    if (!(await tx.turns.patchRunning(turn.id, turn.fence, { fence: turn.fence }))) return null;
    const at = runtime.deps.now();
    const patch = { status: "taken", carrier: "steer", turnId: turn.id, takenAt: at } as const;
    if (!(await tx.messages.move(message.id, ["queued"], patch))) return null;
    const session = (await tx.sessions.byId(message.sessionId))!;
    const { text } = await render(tx, session, [message]);
    if (message.body === null) await tx.messages.move(message.id, ["taken"], { body: text });
    await startClock(tx, message, { parentMs: runtime.deps.config.triggers.parentMs, now: at });
    const data = { messageId: message.id, carrier: "steer", turnId: turn.id };
    tx.append({ sessionId: message.sessionId, type: "message.taken", data, at });
    return text;
  });
  return taken === STALE ? null : taken;
}

/**
 * Records how a message was delivered. If `into` is given, the agent took the message into that turn, and the
 * message is added to the transcript. Returns false if another process has taken over.
 */
async function note(
  runtime: Runtime,
  slot: AgentSlot,
  of: { message: MessageRecord; delivered: Delivered; into?: { turn: TurnRecord; text: string } },
): Promise<boolean> {
  const { message, delivered, into = null } = of;
  const noted = await runtime.deps.store.write(message.rootId, slot.lease, async (tx) => {
    const metadata = { ...message.metadata, delivered };
    await tx.messages.move(message.id, ["queued", "taken", "landed"], { metadata });
    const fresh = into === null ? null : await tx.messages.byId(message.id);
    if (into === null || fresh?.status !== "taken" || fresh.turnId !== into.turn.id) return;
    await appendMessages(tx, into.turn, {
      bodies: [{ message: fresh, body: into.text }],
      now: runtime.deps.now(),
    });
  });
  return noted !== STALE;
}

/**
 * Gives a refused message back to the inbox. Does nothing if the turn has settled, because the settle has
 * given the message back, and another turn may have taken it.
 */
async function returnToQueue(runtime: Runtime, slot: AgentSlot, { turn, message }: Steer): Promise<void> {
  await runtime.deps.store.write(message.rootId, slot.lease, async (tx) => {
    const fresh = await tx.messages.byId(message.id);
    if (fresh?.turnId === turn.id) await giveBack(tx, fresh, { repeated: false, now: runtime.deps.now() });
  });
}
