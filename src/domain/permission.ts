import type { Agent, Enforcement, Permission } from "../contract/index.ts";

const STRICT_TO_LOOSE: readonly Permission[] = ["read-only", "ask", "workspace", "full"];

/** A child is never more powerful than its parent. */
export function isLooser(mode: Permission, than: Permission): boolean {
  return STRICT_TO_LOOSE.indexOf(mode) > STRICT_TO_LOOSE.indexOf(than);
}

/** The most a session may be allowed, and whose word that is. */
export interface Ceiling {
  readonly mode: Permission;
  /** As it stands in a refusal: "your own", "the API key's". */
  readonly whose: string;
}

/** The strictest of these, and of two equal ones the first; null where there is none. */
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

/** What holds an agent to a mode; one that says nothing of it asks, and is answered. */
export function enforcementOf(agent: Pick<Agent, "enforces">, mode: Permission): Enforcement {
  return agent.enforces?.[mode] ?? "asked";
}

export function isWeaker(level: Enforcement, than: Enforcement): boolean {
  return WEAK_TO_STRONG.indexOf(level) < WEAK_TO_STRONG.indexOf(than);
}

export const ENFORCEMENT_WORDS: Readonly<Record<Enforcement, string>> = {
  os: "by a sandbox of the operating system",
  agent: "by its own gate",
  asked: "by what it asks and is answered",
  none: "by nothing",
};
