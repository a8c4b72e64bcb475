import type { SessionRecord } from "../../store/port/store.ts";
import { folderChange } from "../../system/folder.ts";
import type { EngineDeps } from "../deps.ts";

/**
 * Why no process may be started in a session's folder now, or null. It was checked at the spawn, and
 * whoever may write beside it could have put a link in its place since: every process start asks again.
 */
export function folderRefusal(deps: EngineDeps, { cwd, parentId, effective }: SessionRecord): string | null {
  // A person names a path and may put a new clone there; a child was given this one folder.
  const identity = parentId === null ? null : (effective.folder ?? null);
  const closed = deps.privateFolders;
  const problem =
    folderChange(cwd, { roots: deps.config.roots, closed, identity }) ??
    folderChange(cwd, { roots: effective.roots ?? [], closed, identity });
  return problem === null
    ? null
    : `${problem}; nothing was started there. Spawn a new session where the work is`;
}
