import { Refusal } from "../../contract/refusal.ts";
import { liftTombstone } from "../../kernel/cancel.ts";
import { stopReport } from "../../kernel/stop-report.ts";
import type { SessionRecord, Tx } from "../../store/port/store.ts";
import type { Handler } from "../deps.ts";
import { refuseImported, resolve } from "../access/resolve.ts";
import { describe, viewOne } from "../read/view.ts";

/** Lets a cancelled or acknowledged session take messages again. An open session stays as it is. */
export const reopen: Handler<"reopen"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  refuseImported(session);
  const row = await deps.store.write(session.rootId, async (tx) => {
    const fresh = (await tx.sessions.byId(session.id)) ?? session;
    if (fresh.endedAt === null) return fresh;
    refuseOtherEnds(fresh);
    await refuseStopping(tx, fresh);
    await liftTombstone(tx, fresh, { by: "the user", now: deps.now() });
    return fresh;
  });
  return { session: await viewOne(deps, row) };
};

function refuseOtherEnds(session: SessionRecord): void {
  if (session.endReason === "cancelled" || session.endReason === "acked") return;
  throw new Refusal(
    "not_available",
    `${describe(session)} ended for another reason (${session.endReason}): only a cancelled or acknowledged session can be reopened.`,
    { sessionId: session.id },
  );
}

/** Refuses while a process of the session runs, because its old turn would settle in the reopened session. */
async function refuseStopping(tx: Tx, session: SessionRecord): Promise<void> {
  const { stopping, left } = await stopReport(tx, [session]);
  if (stopping.length === 0 && left.length === 0) return;
  const names = left.map(({ pid, what }) => `pid ${pid} (${what})`).join(", ");
  const why =
    left.length === 0 ? "is still being stopped" : `has processes that could not be stopped: ${names}`;
  throw new Refusal("not_available", `${describe(session)} ${why}. Try again when it has stopped.`, {
    sessionId: session.id,
  });
}
