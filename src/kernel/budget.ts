import type { Budget } from "../contract/index.ts";
import { type Account, type Asked, workedMs } from "../domain/budget.ts";
import { isBlocking } from "../domain/trigger.ts";
import type { Reads, SessionRecord } from "../store/port/store.ts";

type Look = Pick<Reads, "sessions" | "turns" | "triggers">;

/** The budgets a session spends from: its own, then those above it. The turn named counts in none of them. */
export async function accountsOf(
  reads: Pick<Reads, "sessions" | "turns">,
  session: SessionRecord,
  withoutTurnId: string | null = null,
): Promise<Account[]> {
  const accounts: Account[] = [];
  for (const each of await withAncestors(reads, session)) {
    const budget = budgetOf(each);
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

/** Its time, and that of those above it: whoever's is over first ends its work. */
export interface Clock {
  readonly minutes: number;
  readonly leftMs: number;
}

/** The clock with the least left; null where no round at or above it is timed. */
export async function clockOf(reads: Look, session: SessionRecord, now: number): Promise<Clock | null> {
  let least: Clock | null = null;
  for (const each of await withAncestors(reads, session)) {
    const { minutes } = budgetOf(each);
    if (minutes === undefined) continue;
    const leftMs = minutes * 60_000 - (await workedOf(reads, each, { now, enoughMs: minutes * 60_000 }));
    if (least === null || leftMs < least.leftMs) least = { minutes, leftMs };
  }
  return least;
}

export function budgetOf(session: SessionRecord): Budget {
  return session.effective.limits;
}

/** How long its open round has worked. Who was asked when is looked up only where it could matter. */
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

/** When a person was asked by the session or by one below it. */
async function askedBelow(reads: Look, session: SessionRecord): Promise<Asked[]> {
  const inside = new Set([session.id]);
  const asked: Asked[] = [];
  // The tree comes by depth, so a parent is always met before its children.
  for (const each of await reads.sessions.tree(session.rootId)) {
    if (each.parentId !== null && inside.has(each.parentId)) inside.add(each.id);
    if (!inside.has(each.id)) continue;
    for (const trigger of await reads.triggers.ofSession(each.id)) {
      const type = trigger.type === "escalate" ? trigger.payload["originalType"] : trigger.type;
      if (!trigger.toPerson || !isBlocking(String(type))) continue;
      // The time in which only a parent was asked is the session's own.
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
