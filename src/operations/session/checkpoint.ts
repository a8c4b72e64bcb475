import { Refusal } from "../../contract/refusal.ts";
import { redact } from "../../secrets/redact.ts";
import { redactNamed } from "../../secrets/redact-deep.ts";
import { newId } from "../../system/id.ts";
import type { SessionRecord, Tx } from "../../store/port/store.ts";
import type { Handler } from "../deps.ts";
import { requireBelow, resolve } from "../access/resolve.ts";
import { callerSession, writeAs } from "../access/authority.ts";
import { describe } from "../read/view.ts";

/** Saves facts for the session's children and its later turns. A constraint applies until it is withdrawn. */
export const checkpoint: Handler<"checkpoint"> = async (deps, caller, { input }) => {
  const self = callerSession(caller);
  const session = input.id === undefined ? self : await resolve(deps, caller, input.id);
  if (session === null)
    throw new Refusal("not_found", "Say which session: a person has no checkpoint of their own.");
  if (session.id !== self?.id) await requireBelow(deps, caller, session);
  refuseSecretNames(input.constraints);
  return writeAs(deps, { caller, rootId: session.rootId }, async (tx) => {
    const fresh = await tx.sessions.byId(session.id);
    if (fresh === null || fresh.endedAt !== null) {
      throw new Refusal("session_ended", "The session has ended; nothing of it can be saved any more.");
    }
    const now = deps.now();
    const turn = await tx.turns.running(session.id);
    const before = (await tx.checkpoints.latest(session.id)).explicit?.constraints ?? {};
    await refuseForeign(tx, fresh, { before, asked: input.constraints });
    const merged = Object.entries({ ...before, ...input.constraints }).filter(([, text]) => text !== "");
    const id = newId();
    await tx.checkpoints.add({
      id,
      rootId: session.rootId,
      sessionId: session.id,
      turnId: turn?.id ?? null,
      kind: "explicit",
      summary: input.summary,
      entities: input.entities,
      constraints: Object.fromEntries(merged),
      entryIndex: fresh.entryCount - 1,
      at: now,
    });
    tx.append({
      sessionId: session.id,
      type: "notice",
      text: "a checkpoint was saved",
      data: { checkpointId: id },
      at: now,
    });
    const above = await tx.checkpoints.constraintsAbove(session.id);
    const inherited = above.reduce((sum, each) => sum + Object.keys(each.constraints).length, 0);
    return { checkpointId: id, sessionId: session.id, constraints: merged.length + inherited };
  });
};

/** Refuses a constraint that is named like a secret, because its text would be redacted and lost. */
function refuseSecretNames(constraints: Readonly<Record<string, string>>): void {
  const name = Object.keys(constraints).find((each) => {
    const text = constraints[each] ?? "";
    return text !== "" && redact(text) === text && redactNamed(each, text) !== text;
  });
  if (name === undefined) return;
  throw new Refusal(
    "invalid_input",
    `A constraint named "${name}" would be redacted as a secret. Choose another name, such as "no-${name}".`,
    { constraint: name },
  );
}

/** Only the session that set a constraint, or an ancestor of that session, may withdraw it. */
async function refuseForeign(
  tx: Tx,
  session: SessionRecord,
  of: { before: Readonly<Record<string, string>>; asked: Readonly<Record<string, string>> },
): Promise<void> {
  const withdrawn = Object.keys(of.asked).filter(
    (name) => of.asked[name] === "" && !Object.hasOwn(of.before, name),
  );
  if (withdrawn.length === 0) return;
  for (const { sessionId, constraints } of await tx.checkpoints.constraintsAbove(session.id)) {
    const name = withdrawn.find((each) => Object.hasOwn(constraints, each));
    if (name === undefined) continue;
    const owner = await tx.sessions.byId(sessionId);
    const who = owner === null ? "a session above" : describe(owner);
    throw new Refusal(
      "forbidden",
      `The constraint "${name}" was set by ${who} and holds for all sessions below it; only that session can withdraw it. Nothing was saved.`,
      { constraint: name, sessionId },
    );
  }
}
