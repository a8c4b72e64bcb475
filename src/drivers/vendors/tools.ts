import type { OpenRequest } from "../port.ts";

/**
 * The tools that a profile may name, by Claude Code's names for them, with a vendor's own. A name that
 * stands not here is the vendor's own word and is taken as it is.
 */
export type ToolTable = Readonly<Record<string, readonly string[]>>;

type Lists = Pick<OpenRequest, "tools" | "notTools">;

/** The vendor's names of what is left to a session; null where that is everything. */
export function allowedTools(table: ToolTable, { tools, notTools }: Lists): string[] | null {
  if (tools === null && notTools.length === 0) return null;
  const names = tools ?? Object.keys(table);
  const denied = new Set(namesOf(table, notTools));
  return namesOf(table, names).filter((name) => !denied.has(name));
}

/** The vendor's names of what is kept from a session. */
export function deniedTools(table: ToolTable, lists: Lists): string[] {
  const denied = namesOf(table, lists.notTools);
  if (lists.tools === null) return denied;
  const held = new Set(allowedTools(table, lists));
  const others = Object.values(table)
    .flat()
    .filter((name) => !held.has(name));
  return [...new Set([...denied, ...others])];
}

function namesOf(table: ToolTable, names: readonly string[]): string[] {
  return [...new Set(names.flatMap((name) => table[name] ?? [name]))];
}
