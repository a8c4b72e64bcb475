import type { InputOf } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { isBlocking } from "../../domain/trigger.ts";
import { hashOf } from "../../system/id.ts";
import { sendTrigger } from "../../kernel/trigger.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { refuseReopening } from "../session/reopen-limit.ts";
import { delivered } from "../session/prompt.ts";
import { isBelow, refuseImported, resolveInScope } from "../access/resolve.ts";
import { keyOwner, refuseBadProfile, refuseReusedKey } from "../spawn/effective.ts";
import { callerSession, refuseGone, requireKeyReach } from "../access/authority.ts";
import { describe } from "../read/view.ts";
import { newTrigger } from "../../kernel/callback.ts";

const PAYLOAD_BYTES_MAX = 262_144;
const OWN_TYPES = new Set(["session_complete", "session_error", "escalate"]);

/** Sends a trigger to a session within the caller's reach. Does not wait for an answer. */
export const fire: Handler<"fire"> = async (deps, caller, { input }) => {
  refusePayload(input);
  const self = callerSession(caller);
  const target = await targetOf(deps, caller, { self, ref: input.id });
  requireKeyReach(caller, target);
  refuseImported(target);
  const isByScope = await requireReach(deps, self, { target, type: input.type });
  const owner = keyOwner(caller);
  const keyHash = hashOf(JSON.stringify([target.id, input.type, input.payload]));
  const { message, existing } = await deps.store.write(target.rootId, async (tx) => {
    const sender = await refuseGone(tx, caller);
    const found = input.key === undefined ? null : await tx.messages.byKey(owner, input.key);
    if (found !== null) {
      if (found.keyHash !== keyHash) refuseReusedKey(input.key ?? "");
      return { message: found, existing: true };
    }
    const fresh = await tx.sessions.byId(target.id);
    if (fresh === null || fresh.endedAt !== null) {
      throw new Refusal("session_ended", `${describe(target)} has ended and takes no more messages.`);
    }
    if (isByScope && fresh.scope !== sender?.scope) throw outOfReach(target, input.type, []);
    // A child may always write to its parent, even if a limit forbids reopening the parent's round.
    if (self?.parentId !== fresh.id) await refuseReopening(deps, tx, { session: fresh, caller });
    const now = deps.now();
    const row = newTrigger({
      sessionId: self?.rootId === target.rootId ? self.id : target.id,
      toId: target.id,
      type: input.type,
      payload: { ...input.payload, ...(input.source === undefined ? {} : { source: input.source }) },
      round: fresh.round,
      now,
    });
    await tx.triggers.add(row);
    const sent = await sendTrigger(tx, fresh, {
      trigger: { ...row, rootId: tx.rootId },
      now,
      delivery: input.deliverAs,
    });
    const keys = input.key === undefined ? {} : { key: input.key, keyCaller: owner, keyHash };
    const from =
      self?.rootId === target.rootId ? {} : { outside: self === null ? nameOf(caller) : describe(self) };
    await tx.messages.move(sent.id, ["queued"], { ...keys, metadata: { ...sent.metadata, ...from } });
    return { message: sent, existing: false };
  });
  const delivery = await delivered(deps, target, message);
  return {
    triggerId: String(message.metadata["triggerId"] ?? ""),
    sessionId: target.id,
    name: target.name,
    delivered: delivery.delivered,
    existing,
  };
};

function refusePayload(input: InputOf<"fire">): void {
  if (isBlocking(input.type) || OWN_TYPES.has(input.type)) {
    throw new Refusal(
      "invalid_input",
      `"${input.type}" is Kinfold's own type and cannot be fired. Choose a name of your own, such as "progress".`,
    );
  }
  const bytes = Buffer.byteLength(JSON.stringify(input.payload));
  if (bytes <= PAYLOAD_BYTES_MAX) return;
  throw new Refusal(
    "prompt_too_large",
    `The payload has ${bytes} bytes; the limit is ${PAYLOAD_BYTES_MAX}. Put the material into a file and name its path.`,
    { bytes, max: PAYLOAD_BYTES_MAX },
  );
}

async function targetOf(
  deps: OperationDeps,
  caller: CallerContext,
  { self, ref }: { self: SessionRecord | null; ref: string },
): Promise<SessionRecord> {
  if (ref !== "parent" || self === null) return resolveInScope(deps, caller, ref);
  const parent = self.parentId === null ? null : await deps.store.read.sessions.byId(self.parentId);
  if (parent === null || self.detachedAt !== null) {
    throw new Refusal(
      "not_found",
      "You have no parent: you are the root of your family. Say it in your own answer instead.",
    );
  }
  return parent;
}

/**
 * Requires that the target is the parent, a descendant, or a session of the scope that accepts the type.
 * Returns true in the last case. The write must then check again, because the scope may have changed.
 */
async function requireReach(
  deps: OperationDeps,
  self: SessionRecord | null,
  { target, type }: { target: SessionRecord; type: string },
): Promise<boolean> {
  if (self === null) return false;
  // A detached session has left its parent's family.
  if (target.id === self.parentId && self.detachedAt === null) return false;
  if (await isBelow(deps.store.read, target, self.id)) return false;
  const { profiles, problems } = await deps.profiles(target.cwd);
  if (target.scope === self.scope) refuseBadProfile(target.profile, { problems, known: [] });
  const accepts = profiles.find((each) => each.name === target.profile)?.accepts ?? [];
  if (target.scope === self.scope && accepts.includes(type)) return true;
  throw outOfReach(target, type, accepts);
}

function outOfReach(target: SessionRecord, type: string, accepts: readonly string[]): Refusal {
  return new Refusal(
    "not_a_child",
    `${describe(target)} is neither your parent nor below you, and its profile does not accept "${type}". You may fire at "parent" and at those below you.`,
    { accepts },
  );
}

function nameOf(caller: CallerContext): string | null {
  return caller.kind === "session" ? null : caller.name;
}
