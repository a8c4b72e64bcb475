import { redactSlowly } from "../../secrets/redact-long.ts";
import type { NewEntry } from "../../store/port/store.ts";
import { takeSteps } from "../../system/steps.ts";

/** The entries without their secrets. Where they have much text, everyone else has a turn in between. */
export async function cleanEntries(entries: readonly NewEntry[]): Promise<NewEntry[]> {
  const unclean = entries.filter(({ isClean }) => isClean !== true);
  if (unclean.length === 0) return [...entries];
  const bodies = await takeSteps(redactSlowly(unclean.map(({ body }) => body)));
  const clean = new Map(unclean.map((entry, i) => [entry, { ...entry, body: bodies[i]!, isClean: true }]));
  return entries.map((entry) => clean.get(entry) ?? entry);
}
