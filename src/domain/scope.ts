import type { Config } from "../contract/index.ts";

/** The scopes that a caller sees; a person sees all. */
export type Visible = readonly string[] | "all";

/**
 * What a session of this scope sees. A scope that the configuration does not call shared is isolated:
 * it sees itself and is seen by itself alone.
 */
export function visibleFrom(scope: string, scopes: Config["scopes"]): readonly string[] {
  const isShared = (name: string): boolean => scopes[name]?.visibility === "shared";
  return isShared(scope) ? Object.keys(scopes).filter(isShared) : [scope];
}

export function sees(visible: Visible, scope: string): boolean {
  return visible === "all" || visible.includes(scope);
}
