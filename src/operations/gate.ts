import type { Caller } from "../contract/index.ts";
import { lowered } from "../domain/limit.ts";
import { withheldFrom } from "../domain/tool-list.ts";
import { giveBack as giveMessageBack } from "../kernel/admit.ts";
import { hashOf } from "../kernel/id.ts";
import { processOf } from "./access/resolve.ts";
import type { OperationDeps } from "./deps.ts";
import type { Feed, FeedRequest, Gate, ToolSight } from "./port.ts";

export function createGate(deps: OperationDeps): Gate {
  return {
    identify: (token) => identify(deps, token),
    giveBack: (caller, messageIds) => giveBack(deps, caller, messageIds),
    spawnReplyLost: (caller, sessionId) => spawnReplyLost(deps, caller, sessionId),
    unread: async (caller) =>
      caller.kind === "session" ? deps.store.read.messages.queuedCount(caller.id) : 0,
    writesWaiting: () => deps.store.writesWaiting(),
    sight: (caller) => sight(deps, caller),
    feed: (caller, request) => feed(deps, caller, request),
  };
}

/** Loaded by the first who follows. */
async function* feed(deps: OperationDeps, caller: Caller, request: FeedRequest): Feed {
  const events = await import("./read/feed.ts");
  yield* events.feed(deps, caller, request);
}

/** Only what is stored counts: a token says nothing about itself. */
async function identify(deps: OperationDeps, token: string): Promise<Caller | null> {
  const row = await deps.store.read.tokens.byHash(hashOf(token));
  if (row === null || row.revokedAt !== null) return null;
  if (row.expiresAt !== null && row.expiresAt <= deps.now()) return null;
  const id = row.hash.slice(0, 16);
  if (row.kind === "person") return { kind: "person", id, name: row.name };
  if (row.kind === "outside") {
    const { name, can, scope, ceiling, roots } = row;
    return { kind: "outside", id, name, can: can ?? [], scope, ceiling: ceiling ?? "read-only", roots };
  }
  if (row.sessionId === null || row.rootId === null || row.fence === null) return null;
  if (!(await isHeld(deps, row.sessionId, row.fence))) return null;
  return { kind: "session", id: row.sessionId, rootId: row.rootId, fence: row.fence };
}

/** A session that we run is held by a lease; an attached one by its own row, because somebody else runs it. */
async function isHeld(deps: OperationDeps, sessionId: string, fence: number): Promise<boolean> {
  const lease = await deps.store.read.leases.bySession(sessionId);
  if (lease !== null) return lease.fence === fence;
  const session = await deps.store.read.sessions.byId(sessionId);
  return session?.origin === "attached" && session.endedAt === null && session.fence === fence;
}

async function sight(deps: OperationDeps, caller: Caller): Promise<ToolSight> {
  const session = caller.kind === "session" ? await deps.store.read.sessions.byId(caller.id) : null;
  if (session === null) return { role: "full", withheld: [] };
  const withheld = withheldFrom(session.effective);
  const mayNotSpawn =
    session.depth >= lowered(deps.config.limits, session.effective.counts).depthMax ||
    withheld.includes("spawn_session");
  if (mayNotSpawn) return { role: "leaf", withheld };
  return { role: session.origin === "attached" && session.parentId === null ? "attached" : "full", withheld };
}

async function giveBack(deps: OperationDeps, caller: Caller, messageIds: readonly string[]): Promise<void> {
  if (caller.kind !== "session" || messageIds.length === 0) return;
  // Of a turn that another process has taken over, recovery decides what reached the agent.
  await deps.store.write(caller.rootId, processOf(caller), async (tx) => {
    for (const id of messageIds) {
      const message = await tx.messages.byId(id);
      if (message !== null && message.sessionId === caller.id && message.carrier === "tool")
        await giveMessageBack(tx, message, false, deps.now());
    }
  });
  deps.reached("message.returned");
}

async function spawnReplyLost(deps: OperationDeps, caller: Caller, sessionId: string): Promise<void> {
  if (caller.kind !== "session") return;
  await deps.store.write(caller.rootId, processOf(caller), async (tx) => {
    const child = await tx.sessions.byId(sessionId);
    if (child?.parentId === caller.id) await tx.sessions.patch(sessionId, { replyLostAt: deps.now() });
  });
}
