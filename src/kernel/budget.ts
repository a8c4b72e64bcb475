import { type Account, type Asked, workedMs } from "../domain/budget.ts";
import { isBlocking } from "../domain/trigger.ts";
import type { Reads, SessionRecord } from "../store/port/store.ts";

type Look = Pick<Reads, "sessions" | "turns" | "triggers">;

/**
 * Returns the budgets from which a session spends: its own, then those of its ancestors. The usage of the
 * turn `withoutTurnId` is not counted.
 */
export async function accountsOf(
  reads: Pick<Reads, "sessions" | "turns">,
  session: SessionRecord,
  withoutTurnId: string | null = null,
): Promise<Account[]> {
  const accounts: Account[] = [];
  for (const each of await withAncestors(reads, session)) {
    const budget = each.effective.limits;
    if (budget.usd === undefined && budget.tokens === undefined && budget.turns === undefined) continue;
    const below = await reads.turns.spentBelow(each.id, withoutTurnId);
    accounts.push({
      isOwn: each.id === session.id,
      budget,
      spent: { tokens: below.tokens, usd: below.usd },
      reserved: { tokens: below.reservedTokens, usd: below.reservedUsd },
      turns: below.turns,
    });
  }
  return accounts;
}

/** A time budget. A session's work ends when its own time budget or an ancestor's is used up. */
export interface Clock {
  readonly minutes: number;
  readonly leftMs: number;
}

/** Returns the time budget with the least time left; null if neither the session nor an ancestor has one. */
export async function clockOf(reads: Look, session: SessionRecord, now: number): Promise<Clock | null> {
  let least: Clock | null = null;
  for (const each of await withAncestors(reads, session)) {
    const { minutes } = each.effective.limits;
    if (minutes === undefined) continue;
    const leftMs = minutes * 60_000 - (await workedOf(reads, each, { now, enoughMs: minutes * 60_000 }));
    if (least === null || leftMs < least.leftMs) least = { minutes, leftMs };
  }
  return least;
}

/**
 * Returns the open round's working time, without waits for a person. If even the total time is below
 * `enoughMs`, returns the total and does not read the waits.
 */
async function workedOf(
  reads: Look,
  session: SessionRecord,
  at: { now: number; enoughMs: number },
): Promise<number> {
  const { roundOpen, roundOpenedAt: openedAt, pausedMs } = session;
  if (!roundOpen || openedAt === null) return 0;
  const round = { openedAt, now: at.now, pausedMs };
  const plain = workedMs({ ...round, asked: [] });
  if (plain < at.enoughMs) return plain;
  return workedMs({ ...round, asked: await askedBelow(reads, session) });
}

/** Returns the periods in which the session or a descendant waited for a person's answer. */
async function askedBelow(reads: Look, session: SessionRecord): Promise<Asked[]> {
  const inside = new Set([session.id]);
  const asked: Asked[] = [];
  // The tree is ordered by depth, so a parent comes before its children.
  for (const each of await reads.sessions.tree(session.rootId)) {
    if (each.parentId !== null && inside.has(each.parentId)) inside.add(each.id);
    if (!inside.has(each.id)) continue;
    for (const trigger of await reads.triggers.ofSession(each.id)) {
      const type = trigger.type === "escalate" ? trigger.payload["originalType"] : trigger.type;
      if (!trigger.toPerson || !isBlocking(String(type))) continue;
      // Time in which only the parent was asked counts as working time.
      asked.push({ from: trigger.personAt ?? trigger.createdAt, to: trigger.closedAt });
    }
  }
  return asked;
}

async function withAncestors(
  reads: Pick<Reads, "sessions">,
  session: SessionRecord,
): Promise<SessionRecord[]> {
  const line = [session];
  for (let at: SessionRecord | null = session; at?.parentId != null;) {
    at = await reads.sessions.byId(at.parentId);
    if (at !== null) line.push(at);
  }
  return line;
}
