import { Refusal } from "../../contract/refusal.ts";
import { lowered, countLimit } from "../../domain/limit.ts";
import { releases } from "../../domain/session.ts";
import type { SessionRecord, Tx } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";

/**
 * A message to a finished session opens a round. It must pass the same limits as a spawn, or a caller could
 * exceed the limits by waking old children. Callbacks and answers are exempt.
 */
export async function refuseReopening(
  deps: OperationDeps,
  tx: Tx,
  { session, caller }: { session: SessionRecord; caller: CallerContext },
): Promise<void> {
  const opens =
    session.origin === "managed" && !session.roundOpen && releases(session.held, caller, session.parentId);
  if (!opens) return;
  const isCounted = session.parentId !== null && session.detachedAt === null;
  const siblings = isCounted ? await tx.sessions.openChildren(session.parentId!) : [];
  const parent = isCounted ? await tx.sessions.byId(session.parentId!) : null;
  const { childrenMax } = lowered(deps.config.limits, parent?.effective.counts);
  const refusal = countLimit(
    {
      openChildren: siblings.map((each) => ({ name: each.name ?? each.shortId })),
      openSessions: await tx.sessions.openCount(session.rootId),
    },
    { ...lowered(deps.config.limits, session.effective.counts), childrenMax },
  );
  if (refusal !== null) throw new Refusal(refusal.code, refusal.message, refusal.details);
}
