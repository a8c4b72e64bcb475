import type { Caller, Permission } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { isLooser } from "../../domain/permission.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { folderVerdict } from "../../system/folder.ts";
import { describe } from "./resolve.ts";

/** What an API key's sessions may be at most; null for everyone else. */
export interface KeyReach {
  readonly name: string;
  readonly ceiling: Permission;
  readonly roots: readonly string[] | null;
}

export function keyReach(caller: Caller): KeyReach | null {
  return caller.kind === "outside" ? caller : null;
}

/** Whether a folder's real path is within these folders; null is any. */
export function isWithin(folder: string, roots: readonly string[] | null | undefined): boolean {
  return roots == null || folderVerdict(folder, { roots, closed: [] }) === "allowed";
}

/**
 * Whoever writes to a session makes it work: a key reaches no session that is allowed more than the
 * key's ceiling, or that works outside its folders. Cancelling needs no such right.
 */
export function requireKeyReach(caller: Caller, session: SessionRecord): void {
  const key = keyReach(caller);
  if (key === null) return;
  const { permission } = session.effective;
  const isTooFree = isLooser(permission, key.ceiling);
  if (!isTooFree && isWithin(session.cwd, key.roots)) return;
  const what = isTooFree ? `is allowed "${permission}"` : `works in ${session.cwd}`;
  const where = key.roots === null ? "" : ` in ${key.roots.join(", ")}`;
  throw new Refusal(
    "forbidden",
    `${describe(session)} ${what}, and the API key "${key.name}" reaches sessions up to "${key.ceiling}"${where}.`,
    { ceiling: key.ceiling, roots: key.roots },
  );
}
