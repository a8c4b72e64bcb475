import type { TellOutput } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import { admit } from "../../kernel/admit.ts";
import { hashOf } from "../../system/id.ts";
import type { MessageRecord, SessionRecord, TriggerRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { refuseReopening } from "./reopen-limit.ts";
import { refuseImported, requireBelow, resolve } from "../access/resolve.ts";
import { keyOwner, refusePrompt, refuseReusedKey } from "../spawn/effective.ts";
import { until } from "../wait/until.ts";
import { refuseGone, requireKeyReach } from "../access/authority.ts";
import { describe } from "../read/view.ts";

/** How long `tell` waits for the engine to report what became of the message. */
const STEER_MS = 5_000;

export const prompt: Handler<"prompt"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  requireKeyReach(caller, session);
  refuseImported(session);
  refusePrompt(deps, input.prompt, session.effective.counts);
  const { message, existing } = await send(deps, caller, {
    session,
    kind: "prompt",
    body: input.prompt,
    delivery: input.delivery,
    key: input.key ?? null,
    metadata: {},
  });
  return { messageId: message.id, sessionId: session.id, position: message.position, existing };
};

/** Sends a message to a child. The reply says if the message was queued, or entered or restarted the turn. */
export const tell: Handler<"tell"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  await requireBelow(deps, caller, session);
  requireKeyReach(caller, session);
  refuseImported(session);
  refusePrompt(deps, input.message, session.effective.counts);
  const { message, existing } = await send(deps, caller, {
    session,
    kind: "tell",
    body: input.message,
    delivery: input.deliverAs,
    key: input.key ?? null,
    metadata: input.restart ? { restart: true } : {},
  });
  const delivery = await delivered(deps, session, message);
  return { messageId: message.id, sessionId: session.id, name: session.name, existing, ...delivery };
};

interface Sending {
  readonly kind: "prompt" | "tell";
  readonly body: string;
  readonly delivery: "steer" | "followUp";
  readonly key: string | null;
  readonly metadata: Record<string, unknown>;
}

async function send(
  deps: OperationDeps,
  caller: CallerContext,
  { session, ...sending }: Sending & { session: SessionRecord },
): Promise<{ message: MessageRecord; existing: boolean }> {
  const owner = keyOwner(caller);
  const keyHash = hashOf(JSON.stringify([session.id, sending.body, sending.delivery]));
  return deps.store.write(session.rootId, async (tx) => {
    const found = sending.key === null ? null : await tx.messages.byKey(owner, sending.key);
    if (found !== null) {
      if (found.keyHash !== keyHash) refuseReusedKey(sending.key ?? "");
      return { message: found, existing: true };
    }
    await refuseGone(tx, caller);
    const fresh = await tx.sessions.byId(session.id);
    if (fresh === null || fresh.endedAt !== null) throw ended(session);
    if (sending.kind === "tell" && (await tx.triggers.openCount(fresh.id)) > 0)
      throw asks(fresh, await tx.triggers.open({ sessionId: fresh.id }));
    await refuseReopening(deps, tx, { session: fresh, caller });
    const keys = sending.key === null ? {} : { key: sending.key, keyCaller: owner, keyHash };
    const message = await admit(tx, fresh, {
      now: deps.now(),
      kind: sending.kind,
      senderKind: caller.kind,
      senderId: caller.id,
      delivery: sending.delivery,
      body: sending.body,
      metadata: sending.metadata,
      ...keys,
    });
    return { message, existing: false };
  });
}

export async function delivered(
  deps: OperationDeps,
  session: SessionRecord,
  message: MessageRecord,
): Promise<Pick<TellOutput, "delivered" | "why">> {
  const name = describe(session);
  const running = await deps.store.read.turns.running(session.id);
  if (running === null) {
    return { delivered: "queued", why: `${name} was idle: your message starts its next turn.` };
  }
  if (message.delivery === "followUp") {
    return { delivered: "queued", why: `${name} is in a turn: yours comes right after it.` };
  }
  const known = await until(deps, { rootId: session.rootId, timeoutMs: STEER_MS }, async () => {
    const now = await deps.store.read.messages.byId(message.id);
    const how = now?.metadata["delivered"];
    return how === "injected" || how === "queued" || how === "restarted" ? how : null;
  });
  if (known === "injected") {
    return { delivered: "injected", why: `${name} has it in its running turn.` };
  }
  if (known === "restarted") {
    return { delivered: "restarted", why: `${name} cut its running turn and began again with it.` };
  }
  const why = `${name} is in the middle of a turn and its agent takes no messages there: yours comes right after it.`;
  return { delivered: "queued", why };
}

function ended(session: SessionRecord): Refusal {
  return new Refusal(
    "session_ended",
    `${describe(session)} has ended and takes no more messages. Spawn a new one for more work.`,
    { sessionId: session.id },
  );
}

function asks(session: SessionRecord, open: readonly TriggerRecord[]): Refusal {
  const asked = open.find((each) => each.originalId === null);
  const id = asked === undefined ? "" : shortId(asked.id);
  return new Refusal(
    "waits_on_trigger",
    `${describe(session)} has asked something and waits for the answer; a message would not reach it. Answer its question first: respond_to_trigger("${id}", …).`,
    { sessionId: session.id, triggerId: asked?.id ?? null },
  );
}
