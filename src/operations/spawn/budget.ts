import type { Budget } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { leftOf, limitWords } from "../../domain/budget.ts";
import { accountsOf, clockOf } from "../../kernel/budget.ts";
import type { SessionRecord, Tx } from "../../store/port/store.ts";

type Unit = keyof Budget;

/**
 * What a child may spend, decided under the tree's lock: at most what is left to its parent. What
 * running turns hold counts as left, since they give back what they do not use; a turn of the
 * child begins only when there is something to hold.
 */
export async function decideWithin(
  tx: Tx,
  parent: SessionRecord,
  child: { readonly asked: Budget; readonly limits: Budget; readonly now: number },
): Promise<Record<string, number>> {
  const accounts = await accountsOf(tx, parent);
  const unheld = accounts.map((account) => ({ ...account, reserved: { tokens: 0, usd: 0 } }));
  const clock = await clockOf(tx, parent, child.now);
  const left: Record<Unit, number | null> = {
    usd: leftOf(unheld, "usd"),
    tokens: leftOf(unheld, "tokens"),
    turns: leftOf(unheld, "turns"),
    minutes: clock === null ? null : Math.max(0, clock.leftMs) / 60_000,
  };
  for (const unit of UNITS) refuseMore(unit, child.asked[unit], left[unit]);
  const limits: Record<string, number> = { ...child.limits };
  if (left.minutes !== null) {
    const minutes = Math.min(limits["minutes"] ?? Infinity, left.minutes);
    limits["minutes"] = Math.floor(minutes * 1_000) / 1_000;
  }
  return limits;
}

const UNITS = ["usd", "tokens", "turns", "minutes"] as const satisfies readonly Unit[];

function refuseMore(unit: Unit, asked: number | undefined, left: number | null): void {
  if (left === null || (left > 0 && (asked === undefined || asked <= left))) return;
  const what =
    left > 0 && asked !== undefined
      ? `${limitWords(unit, asked)} was asked for and ${limitWords(unit, left)} is left of your budget.`
      : "nothing is left of your budget.";
  const next =
    left > 0
      ? "Ask for less, or leave the limit out to share what is left."
      : "Do this part yourself if you still can, report what is done, and tell the user; do not spawn again.";
  throw new Refusal("over_budget", `${what} ${next}`, { unit, asked: asked ?? null, left });
}
