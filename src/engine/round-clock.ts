import { limitReason } from "../domain/budget.ts";
import { clockOf } from "../kernel/budget.ts";
import { raiseError, unpark } from "../kernel/park.ts";
import { closeRound } from "../kernel/round.ts";
import type { SessionRecord, Tx } from "../store/port/store.ts";
import { moveDeadlines } from "./deadlines.ts";
import type { EngineDeps } from "./deps.ts";
import type { Runtime } from "./agent/slot.ts";
import { stopAtLimit } from "./usage/reservation.ts";

export async function resumeParked(deps: EngineDeps, now: number): Promise<void> {
  for (const { id, rootId, fence } of await deps.store.read.sessions.parkedUntil(deps.store.node, now)) {
    await deps.store.write(rootId, { session: id, fence }, async (tx) => {
      const session = await tx.sessions.byId(id);
      const until = session?.parked?.until ?? null;
      if (session !== null && until !== null && until <= now) await unpark(tx, session, now);
    });
  }
}

/**
 * Enforces the time budgets of open rounds. When the budget of a session or of its ancestor is used up, the
 * session's running turn is stopped. If the session has no running turn, its round fails at once.
 */
export async function stopOvertime(runtime: Runtime, now: number): Promise<void> {
  const { store } = runtime.deps;
  const timed = new Set(await store.read.sessions.timedTrees(store.node));
  if (timed.size === 0) return;
  const open = await store.read.sessions.withOpenRound(store.node);
  const over: { session: SessionRecord; reason: string }[] = [];
  for (const session of open) {
    if (!timed.has(session.rootId)) continue;
    const clock = await clockOf(store.read, session, now);
    if (clock !== null && clock.leftMs <= 0)
      over.push({ session, reason: limitReason("minutes", clock.minutes) });
  }
  for (const { session, reason } of over) {
    const slot = runtime.slots.get(session.id);
    if (slot !== undefined && slot.recorder !== null) stopAtLimit(slot, reason);
    else await failRound(runtime.deps, session, reason);
  }
}

/**
 * Excludes the time in which no daemon ran from time budgets and deadlines. In each tree, this time begins at
 * the tree's last activity.
 */
export async function forgetDowntime(deps: EngineDeps): Promise<void> {
  const { store } = deps;
  const open = await store.read.sessions.withOpenRound(store.node);
  const isTimed = ({ effective }: SessionRecord): boolean => effective.limits.minutes !== undefined;
  const timed = Map.groupBy(open.filter(isTimed), (session) => session.rootId);
  const asked = Map.groupBy(await store.read.triggers.withDeadline(), (trigger) => trigger.rootId);
  for (const rootId of new Set([...timed.keys(), ...asked.keys()])) {
    const tree = await store.read.sessions.tree(rootId);
    const here = new Set(tree.filter((each) => each.node === store.node).map((each) => each.id));
    const triggers = (asked.get(rootId) ?? []).filter((trigger) => here.has(trigger.sessionId));
    const lastSign = Math.max(...tree.map((each) => Math.max(each.lastActivityAt, each.updatedAt)));
    const byMs = Math.round(deps.now() - lastSign);
    if (byMs <= 0) continue;
    // No fence: a fence covers one session, and this write moves the deadlines of a whole tree.
    await store.write(rootId, async (tx) => {
      await pause(tx, timed.get(rootId) ?? [], byMs);
      await moveDeadlines(tx, triggers, byMs);
    });
  }
}

/** Adds to the paused time of sessions, which does not count against their time budgets. */
export async function pause(tx: Tx, sessions: readonly SessionRecord[], byMs: number): Promise<void> {
  for (const { id } of sessions) {
    const session = await tx.sessions.byId(id);
    if (session === null || !session.roundOpen) continue;
    await tx.sessions.patch(id, { pausedMs: session.pausedMs + byMs });
  }
}

/** Fails a round that has no running turn: it is waiting for a slot, its children or the reset of a limit. */
async function failRound(deps: EngineDeps, over: SessionRecord, reason: string): Promise<void> {
  const { id, rootId, fence } = over;
  await deps.store.write(rootId, { session: id, fence }, async (tx) => {
    const now = deps.now();
    const session = await tx.sessions.byId(over.id);
    if (session === null || !session.roundOpen || session.endedAt !== null) return;
    if ((await tx.turns.running(session.id)) !== null) return;
    await raiseError(tx, session, { error: { error: reason, kind: "budget" }, now });
    await closeRound(tx, session, { outcome: "failed", reason, by: null, now });
    tx.wake(session.id);
  });
}
