import type { Budget, BudgetPatch, Session } from "../../contract/index.ts";
import type { Call, Flags } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { Failure } from "../failure.ts";
import { findSession, labelOf } from "../sessions.ts";
import { limitWords } from "../spawning.ts";
import { usd } from "../terminal/text.ts";
import { tokens } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const { client } = await openConnection(call);
  const found = await findSession(client, call.args[0] ?? "");
  const limits = limitsOf(call.flags, found);
  const isChange = Object.keys(limits).length > 0;
  const { session } = isChange ? await client.update({ id: found.id, limits }) : { session: found };
  const holds = limitWords(session.effective.limits as Budget);
  const mark = isChange ? `${call.io.tick} ` : "";
  const text = `${labelOf(session)} may use ${holds || "any amount"}; ${usedWords(session)}`;
  call.io.answer({ session }, mark + text);
}

function limitsOf(flags: Flags, session: Session): BudgetPatch {
  const given: BudgetPatch = {};
  for (const unit of ["usd", "tokens", "turns", "minutes"] as const) {
    const value = flags.number(unit);
    if (value !== undefined) given[unit] = value;
  }
  if (!flags.on("none")) return given;
  if (Object.keys(given).length > 0) {
    throw new Failure("refused", "--none removes all limits; leave the other options out.");
  }
  return Object.fromEntries(Object.keys(session.effective.limits).map((unit) => [unit, null]));
}

/** Counts descendants too: they spend from the same budget. */
function usedWords({ treeUsage }: Session): string {
  const spent = treeUsage.inputTokens + treeUsage.outputTokens;
  const money = treeUsage.usd === null || treeUsage.usd === 0 ? "" : ` and ${usd(treeUsage.usd)}`;
  return `used so far, including its descendants: ${tokens(spent)} tokens${money}`;
}
