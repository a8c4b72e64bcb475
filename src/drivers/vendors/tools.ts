import type { OpenRequest } from "../port.ts";

/** Maps a tool's name in profiles (Claude Code's name) to the vendor's names. Other names pass unchanged. */
export type ToolTable = Readonly<Record<string, readonly string[]>>;

type Lists = Pick<OpenRequest, "tools" | "notTools">;

/** Returns the vendor's names of the tools that a session may use; null if it may use all. */
export function allowedTools(table: ToolTable, { tools, notTools }: Lists): string[] | null {
  if (tools === null && notTools.length === 0) return null;
  const names = tools ?? Object.keys(table);
  const denied = new Set(namesOf(table, notTools));
  return namesOf(table, names).filter((name) => !denied.has(name));
}

/** Returns the vendor's names of the tools that a session may not use. */
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
