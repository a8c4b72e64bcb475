import { giveBack } from "../kernel/admit.ts";
import type { MessageRecord } from "../store/port.ts";
import { startClock } from "../kernel/trigger.ts";
import { appendEntries, entryOf, render } from "./claim.ts";
import type { Place, Runtime } from "./place.ts";

/** Messages that want to go into the running turn, where the agent can take them. One at a time, in order. */
export async function steerQueued(runtime: Runtime, place: Place): Promise<void> {
  if (place.isSteering || place.recorder === null) return;
  place.isSteering = true;
  try {
    for (;;) {
      const message = await nextSteer(runtime, place);
      if (message === null) return;
      await steerOne(runtime, place, message);
    }
  } catch (error) {
    runtime.deps.log.error({ err: error, sessionId: place.session.id }, "a steer could not be written");
  } finally {
    place.isSteering = false;
  }
}

async function nextSteer(runtime: Runtime, place: Place): Promise<MessageRecord | null> {
  if (place.recorder === null || place.agent === null || place.isEnding) return null;
  const queued = await runtime.deps.store.read.messages.queued(place.session.id, 50);
  const isWanted = (message: MessageRecord): boolean =>
    message.delivery === "steer" && message.metadata["delivered"] === undefined;
  return queued.find(isWanted) ?? null;
}

async function steerOne(runtime: Runtime, place: Place, message: MessageRecord): Promise<void> {
  const how = runtime.agents.get(place.session.agent)?.steer ?? "none";
  const mayRestart = message.metadata["restart"] === true;
  if (how === "none" || (how === "restart" && !mayRestart)) {
    await note(runtime, message, "queued");
    return;
  }
  const { agent, recorder } = place;
  if (agent === null || recorder === null) return;
  const text = await take(runtime, place, message);
  if (text === null) return;
  runtime.deps.reached("steer.taken");
  const result = await agent.handle.steer(text);
  runtime.deps.reached("steer.sent");
  await note(runtime, message, result === "refused" ? "queued" : result);
  if (result === "refused") await returnToQueue(runtime, message);
}

/** Durable before the first byte; the turn must still be ours and running. */
async function take(runtime: Runtime, place: Place, message: MessageRecord): Promise<string | null> {
  const turn = place.recorder?.turn;
  if (turn === undefined) return null;
  return runtime.deps.store.write(message.rootId, async (tx) => {
    if (!(await tx.turns.patchRunning(turn.id, turn.fence, { fence: turn.fence }))) return null;
    const at = runtime.deps.now();
    const patch = { status: "taken", carrier: "steer", turnId: turn.id, takenAt: at } as const;
    if (!(await tx.messages.move(message.id, ["queued"], patch))) return null;
    const session = (await tx.sessions.byId(message.sessionId))!;
    const { text } = await render(tx, session, [message]);
    if (message.body === null) await tx.messages.move(message.id, ["taken"], { body: text });
    await appendEntries(tx, message.sessionId, [entryOf(message, text, { turnId: turn.id, at })]);
    await startClock(tx, message, { parentMs: runtime.deps.config.triggers.parentMs, now: at });
    const data = { messageId: message.id, carrier: "steer", turnId: turn.id };
    tx.append({ sessionId: message.sessionId, type: "message.taken", text: null, data, at });
    return text;
  });
}

async function note(
  runtime: Runtime,
  message: MessageRecord,
  delivered: "injected" | "queued" | "restarted",
): Promise<void> {
  await runtime.deps.store.write(message.rootId, async (tx) => {
    const metadata = { ...message.metadata, delivered };
    await tx.messages.move(message.id, ["queued", "taken", "landed"], { metadata });
  });
}

async function returnToQueue(runtime: Runtime, message: MessageRecord): Promise<void> {
  await runtime.deps.store.write(message.rootId, async (tx) => {
    const fresh = await tx.messages.byId(message.id);
    if (fresh !== null) await giveBack(tx, fresh, false, runtime.deps.now());
  });
}
