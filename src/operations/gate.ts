import type { Caller } from "../contract/index.ts";
import { giveBack as giveMessageBack } from "../kernel/admit.ts";
import { hashOf } from "../system/id.ts";
import { lowered } from "../domain/limit.ts";
import { visibleFrom, withheldFrom } from "../domain/permission.ts";
import type { SessionRecord } from "../store/port/store.ts";
import type { OperationDeps } from "./deps.ts";
import type { CallerContext, Feed, FeedRequest, Gate } from "./port.ts";

export function createGate(deps: OperationDeps): Gate {
  return {
    identify: (token) => identify(deps, token),
    giveBack: (caller, messageIds) => giveBack(deps, caller, messageIds),
    spawnReplyLost: (caller, sessionId) => spawnReplyLost(deps, caller, sessionId),
    unread: async (caller) =>
      caller.kind === "session" ? deps.store.read.messages.queuedCount(caller.id) : 0,
    writesWaiting: deps.store.writesWaiting.bind(deps.store),
    feed: (caller, request) => feed(deps, caller, request),
  };
}

/** Loads the feed's code when the first client follows a feed. */
async function* feed(deps: OperationDeps, caller: CallerContext, request: FeedRequest): Feed {
  const events = await import("./read/feed.ts");
  yield* events.feed(deps, caller, request);
}

/** Reads the caller's rights from the store; the token itself contains none. */
async function identify(deps: OperationDeps, token: string): Promise<CallerContext | null> {
  const row = await deps.store.read.tokens.byHash(hashOf(token));
  if (row === null || row.revokedAt !== null) return null;
  if (row.expiresAt !== null && row.expiresAt <= deps.now()) return null;
  const id = row.hash.slice(0, 16);
  if (row.kind === "person") return contextOf(deps, { kind: "person", id, name: row.name }, null);
  if (row.kind === "outside") {
    const { name, can, scope, roots } = row;
    const key = { name, can: can ?? [], scope, ceiling: row.ceiling ?? "read-only", roots };
    return contextOf(deps, { kind: "outside", id, ...key }, null);
  }
  if (row.sessionId === null || row.rootId === null || row.fence === null) return null;
  const session = await heldBy(deps, row.sessionId, row.fence);
  if (session === null) return null;
  return contextOf(deps, { kind: "session", id: session.id, rootId: row.rootId, fence: row.fence }, session);
}

/** Returns the caller's context; `session` is the caller's own row, as just read. */
export function contextOf(
  deps: Pick<OperationDeps, "config">,
  caller: Caller,
  session: SessionRecord | null,
): CallerContext {
  if (session === null) {
    const visible = caller.kind === "outside" && caller.scope !== null ? [caller.scope] : "all";
    return { ...caller, self: null, visible, role: "full", withheld: [] };
  }
  const visible = visibleFrom(session.scope, deps.config.scopes);
  const withheld = withheldFrom(session.effective);
  const { depthMax } = lowered(deps.config.limits, session.effective.counts);
  const isLeaf = session.depth >= depthMax || withheld.includes("spawn_session");
  const isAttached = session.origin === "attached" && session.parentId === null;
  const role = isLeaf ? "leaf" : isAttached ? "attached" : "full";
  return { ...caller, self: session, visible, role, withheld };
}

/**
 * Returns the session if the token is still valid for it. The lease of a managed session must have the
 * token's fence. An attached session has no lease, so the session's own row must have the token's fence.
 */
async function heldBy(deps: OperationDeps, sessionId: string, fence: number): Promise<SessionRecord | null> {
  const lease = await deps.store.read.leases.bySession(sessionId);
  if (lease !== null && lease.fence !== fence) return null;
  const session = await deps.store.read.sessions.byId(sessionId);
  if (session === null || lease !== null) return session;
  const isHeld = session.origin === "attached" && session.endedAt === null && session.fence === fence;
  return isHeld ? session : null;
}

async function giveBack(deps: OperationDeps, caller: Caller, messageIds: readonly string[]): Promise<void> {
  if (caller.kind !== "session" || messageIds.length === 0) return;
  // If another process has taken over the turn, the store drops this write; recovery then decides which
  // messages reached the agent.
  await deps.store.write(caller.rootId, { session: caller.id, fence: caller.fence }, async (tx) => {
    for (const id of messageIds) {
      const message = await tx.messages.byId(id);
      if (message !== null && message.sessionId === caller.id && message.carrier === "tool")
        await giveMessageBack(tx, message, { repeated: false, now: deps.now() });
    }
  });
  deps.reached("message.returned");
}

async function spawnReplyLost(deps: OperationDeps, caller: Caller, sessionId: string): Promise<void> {
  if (caller.kind !== "session") return;
  await deps.store.write(caller.rootId, { session: caller.id, fence: caller.fence }, async (tx) => {
    const child = await tx.sessions.byId(sessionId);
    if (child?.parentId === caller.id) await tx.sessions.patch(sessionId, { replyLostAt: deps.now() });
  });
}
