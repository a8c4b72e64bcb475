import type { Permission } from "../contract/index.ts";

const STRICT_TO_LOOSE: readonly Permission[] = ["read-only", "ask", "workspace", "full"];

/** A child is never more powerful than its parent. */
export function isLooser(mode: Permission, than: Permission): boolean {
  return STRICT_TO_LOOSE.indexOf(mode) > STRICT_TO_LOOSE.indexOf(than);
}

export function atMost(mode: Permission): Permission[] {
  return STRICT_TO_LOOSE.slice(0, STRICT_TO_LOOSE.indexOf(mode) + 1);
}
