import { setTimeout as pause } from "node:timers/promises";
import type { RespondOutput, Session } from "../../contract/index.ts";
import { findAsked } from "../answering/asked-trigger.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { decisionOf, replyTo } from "../answering/reply.ts";
import { labelOf } from "../sessions.ts";
import { clock, cleanLine } from "../terminal/text.ts";

export async function run(call: Call): Promise<void> {
  const [ref = "", ...words] = call.args;
  const decision = decisionOf(call);
  const { client } = await openConnection(call);
  const asked = await findAsked(client, ref, decision?.action ?? null);
  const reply = await replyTo(call, asked, { words, decision });
  const done = await client.respond({ id: asked.trigger.id, ...reply });
  const { session } = asked;
  if (call.io.json) {
    await untilSeen(client, done);
    return call.io.answer({ ...done, trigger: await current(client, done) });
  }
  if (reply.action === "ack") return call.io.line(`${call.io.tick} ${cleanLine(done.what)}`);
  call.io.stdout.write(`${call.io.tick} accepted ${clock(done.trigger.answer?.at ?? Date.now())}`);
  call.io.line(
    reply.action === "followUp"
      ? `; ${labelOf(session)} continues with it`
      : `, ${await seen(client, done, session)}`,
  );
}

async function seen(client: Client, done: RespondOutput, session: Session): Promise<string> {
  const at = await untilSeen(client, done);
  const label = labelOf(session);
  if (at !== null) return `seen by ${label} ${clock(at)}`;
  const now = (await client.get({ id: session.id })).session;
  const why = now.status === "running" ? " (its turn is running)" : "";
  return `${label} has not picked it up yet${why}`;
}

/** Resolves to the time when the agent received the answer; null if that takes longer than `SEEN_MS`. */
async function untilSeen(client: Client, done: RespondOutput): Promise<number | null> {
  const deadline = performance.now() + SEEN_MS;
  for (;;) {
    const { seenByAgentAt } = await current(client, done);
    if (seenByAgentAt !== null) return seenByAgentAt;
    if (performance.now() >= deadline) return null;
    await pause(LOOK_MS);
  }
}

/**
 * Returns the trigger as it is now. If it was passed on, returns the original trigger, because only the
 * original records when the agent saw the answer.
 */
async function current(client: Client, { trigger }: RespondOutput): Promise<RespondOutput["trigger"]> {
  const { triggers } = await client.triggers({ id: trigger.sessionId });
  const id = trigger.originalId ?? trigger.id;
  return triggers.find((each) => each.id === id) ?? trigger;
}

const SEEN_MS = 10_000;
const LOOK_MS = 200;
