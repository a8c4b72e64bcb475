import type { BudgetPatch, Effective } from "../../contract/index.ts";
import { retryBudgets } from "../../kernel/park.ts";
import { closeIfOver } from "../../kernel/round.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import type { Handler } from "../deps.ts";
import { refuseImported, resolve } from "../access/resolve.ts";
import { refuseTemplate } from "../spawn/effective.ts";
import { viewOne } from "../read/view.ts";

export const update: Handler<"update"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  refuseTemplate(input.callback?.template ?? null);
  if (input.limits !== undefined) refuseImported(session);
  const row = await deps.store.write(session.rootId, async (tx) => {
    const fresh = (await tx.sessions.byId(session.id)) ?? session;
    const now = deps.now();
    const patch: Partial<SessionRecord> = { updatedAt: now };
    if (input.title !== undefined) patch.title = input.title;
    if (input.seen !== undefined) patch.seen = input.seen;
    if (input.limits !== undefined) patch.effective = withLimits(fresh, input.limits);
    if (input.callback !== undefined) patch.callback = { ...fresh.callback, ...input.callback };
    await tx.sessions.patch(session.id, patch);
    const { id: _, ...changed } = input;
    tx.append({ sessionId: session.id, type: "session.updated", text: null, data: changed, at: now });
    // A child that no longer calls back does not keep its parent's round open, so that round may be over now.
    if (input.callback !== undefined && fresh.parentId !== null) await closeIfOver(tx, fresh.parentId, now);
    if (input.limits !== undefined) await retryBudgets(tx, session.rootId, now);
    return { ...fresh, ...patch };
  });
  return { session: await viewOne(deps, row) };
};

/** A person may raise or remove a session's budget limits. The limits of its ancestors still apply. */
function withLimits(session: SessionRecord, patch: BudgetPatch): Effective {
  const limits = { ...session.effective.limits };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete limits[key];
    else if (value !== undefined) limits[key] = value;
  }
  return { ...session.effective, limits };
}
