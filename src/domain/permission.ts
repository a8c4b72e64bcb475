import type { Agent, Config, Effective, Enforcement, Permission } from "../contract/index.ts";
import { ALIAS_WORDS, TOOL_WORDS } from "../contract/tools/words.ts";

const STRICT_TO_LOOSE: readonly Permission[] = ["read-only", "ask", "workspace", "full"];

export function isLooser(mode: Permission, than: Permission): boolean {
  return STRICT_TO_LOOSE.indexOf(mode) > STRICT_TO_LOOSE.indexOf(than);
}

/** The loosest mode a session may have, and who set that limit. */
export interface Ceiling {
  readonly mode: Permission;
  /** Whose limit it is, as a refusal says it: "your own", "the API key's". */
  readonly whose: string;
}

/** Returns the strictest ceiling, the first of equal ones; null for an empty list. */
export function strictest(ceilings: readonly Ceiling[]): Ceiling | null {
  return ceilings.reduce<Ceiling | null>(
    (least, each) => (least === null || isLooser(least.mode, each.mode) ? each : least),
    null,
  );
}

export function atMost(mode: Permission): Permission[] {
  return STRICT_TO_LOOSE.slice(0, STRICT_TO_LOOSE.indexOf(mode) + 1);
}

const WEAK_TO_STRONG: readonly Enforcement[] = ["none", "asked", "agent", "os"];

/** An agent that declares no enforcement is assumed to ask for permission. */
export function enforcementOf(agent: Pick<Agent, "enforces">, mode: Permission): Enforcement {
  return agent.enforces?.[mode] ?? "asked";
}

export function isWeaker(level: Enforcement, than: Enforcement): boolean {
  return WEAK_TO_STRONG.indexOf(level) < WEAK_TO_STRONG.indexOf(than);
}

export const ENFORCEMENT_WORDS: Readonly<Record<Enforcement, string>> = {
  os: "by a sandbox of the operating system",
  agent: "by the agent's own permission checks",
  asked: "only by the permissions it asks for",
  none: "by nothing",
};

const OURS: ReadonlySet<string> = new Set([...TOOL_WORDS, ALIAS_WORDS].map(({ name }) => name));
const PREFIX = "mcp__kinfold__";
const ALL_OURS = "mcp__kinfold";

/** Returns the agent's own tools from a list, without Kinfold's; null (all tools) stays null. */
export function ownToolsOf<L extends readonly string[] | null>(list: L): L | string[] {
  return list === null ? list : list.filter((name) => !isOurs(name));
}

/** Returns Kinfold's tools that a session may not call. Without `spawn_session`, it cannot spawn at all. */
export function withheldFrom(lists: Lists): string[] {
  const withheld = [...OURS].filter((name) => !mayCall(lists, name));
  if (!withheld.includes(SPAWN)) return withheld.filter((name) => name !== ALIAS_WORDS.name);
  return [...new Set([...withheld, ...SPAWNING])];
}

/** True if a session has none of Kinfold's tools: it then needs neither our MCP server nor a token. */
export function hasNoTools(lists: Lists): boolean {
  return withheldFrom(lists).length === OURS.size;
}

/** Whether a session without the `withheld` tools may give `tool` to a child; null if it is not our tool. */
export function mayGive(tool: string, withheld: readonly string[]): boolean | null {
  if (!isOurs(tool)) return null;
  return tool === ALL_OURS ? withheld.length === 0 : !withheld.includes(bare(tool));
}

/** Replaces the entry for Kinfold's whole server with the names of its tools that are not withheld. */
export function withoutWithheld(list: readonly string[], withheld: readonly string[]): string[] {
  if (withheld.length === 0) return [...list];
  const left = [...OURS].filter((name) => !withheld.includes(name));
  return [...new Set(list.flatMap((name) => (name === ALL_OURS ? left : [name])))];
}

const SPAWN = "spawn_session";
const SPAWNING = [SPAWN, "subagent", ALIAS_WORDS.name];

/** Without an allow list, a session may call all of Kinfold's tools; with a list, only the tools on it. */
function mayCall({ tools, disallowedTools }: Lists, tool: string): boolean {
  const fits = (name: string): boolean => name === ALL_OURS || bare(name) === tool;
  if (disallowedTools?.some(fits)) return false;
  return tools?.some(fits) ?? true;
}

type Lists = Pick<Effective, "tools" | "disallowedTools">;

export function toolProblem(agent: Pick<Agent, "name" | "tools">, lists: Lists): string | null {
  const wanted = [...(ownToolsOf(lists.tools) ?? []), ...(ownToolsOf(lists.disallowedTools ?? []) ?? [])];
  if (agent.tools !== undefined || (lists.tools === null && wanted.length === 0)) return null;
  return `${agent.name} cannot be restricted to a list of tools`;
}

export function serverProblem(
  agent: Pick<Agent, "name" | "servers">,
  servers: readonly string[] | null,
): string | null {
  if (servers === null || agent.servers === "named") return null;
  if (agent.servers === "ours" && servers.length === 0) return null;
  return agent.servers === "ours"
    ? `${agent.name} can be restricted to Kinfold's own MCP server (mcp: []), but not to other servers by name`
    : `${agent.name} cannot be restricted to some of its configured MCP servers`;
}

function isOurs(name: string): boolean {
  return name === ALL_OURS || OURS.has(bare(name));
}

function bare(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}

/** The scopes that a caller sees; a person sees all. */
export type Visible = readonly string[] | "all";

/** A scope that is not marked as shared is isolated: it sees only itself, and no other scope sees it. */
export function visibleFrom(scope: string, scopes: Config["scopes"]): readonly string[] {
  const isShared = (name: string): boolean => scopes[name]?.visibility === "shared";
  return isShared(scope) ? Object.keys(scopes).filter(isShared) : [scope];
}

export function sees(visible: Visible, scope: string): boolean {
  return visible === "all" || visible.includes(scope);
}
