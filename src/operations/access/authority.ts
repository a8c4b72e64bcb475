import {
  type Caller,
  OPERATIONS,
  type OperationName,
  type OperationSpec,
  type Permission,
  Refusal,
} from "../../contract/index.ts";
import { isLooser } from "../../domain/permission.ts";
import { type ProcessFence, type SessionRecord, STALE, type Tx } from "../../store/port/store.ts";
import { folderVerdict } from "../../system/folder.ts";
import type { OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { describe } from "../read/view.ts";

/** Returns the caller's session, or null for a person or an API key. Refuses a session that has ended. */
export function callerSession({ self }: CallerContext): SessionRecord | null {
  if (self !== null && self.endedAt !== null) throw callerEnded();
  return self;
}

/**
 * Refuses a session that was cancelled or replaced since its token was looked up. Call it inside a write,
 * under the tree's lock. Returns the caller's current row. If the write has already read that row, pass it as
 * `known`.
 */
export async function refuseGone(
  tx: Tx,
  caller: Caller,
  known: SessionRecord | null = null,
): Promise<SessionRecord | null> {
  if (caller.kind !== "session") return null;
  const session = known?.id === caller.id ? known : await tx.sessions.byId(caller.id);
  if (session === null || session.endedAt !== null) throw callerEnded();
  if (session.fence !== caller.fence) throw replaced();
  return session;
}

/** Runs a write for a caller. Refuses it if the caller's process was replaced by another one. */
export async function writeAs<T>(
  { store }: OperationDeps,
  { caller, rootId }: { caller: Caller; rootId: string },
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  if (caller.kind !== "session") return store.write(rootId, work);
  const written = await store.write(rootId, processOf(caller), work);
  if (written === STALE) throw replaced();
  return written;
}

export function processOf({ id, fence }: Caller & { kind: "session" }): ProcessFence {
  return { session: id, fence };
}

function replaced(): Refusal {
  return new Refusal("unauthorized", "This process has been replaced: its token is no longer valid.");
}

function callerEnded(): Refusal {
  return new Refusal("session_ended", "This session has ended: nothing more can be done from it.");
}

/** Checks only the rights stored for the caller. Nothing that a request claims about itself counts. */
export function requireRight(caller: Caller, operation: OperationName): void {
  if (caller.kind === "person") return;
  if (caller.kind === "session") {
    if (OPERATIONS[operation].sessions) return;
    throw new Refusal(
      "forbidden",
      `A session may not call ${operation}; only a person may. Use your Kinfold tools.`,
      { operation },
    );
  }
  const { right }: OperationSpec = OPERATIONS[operation];
  if (right !== undefined && caller.can.includes(right)) return;
  const what = right === undefined ? "only a person may do this" : `it needs the right "${right}"`;
  throw new Refusal(
    "forbidden",
    `The API key "${caller.name}" may not do this: ${what}. It may: ${caller.can.join(", ") || "nothing"}.`,
    { can: caller.can, needs: right ?? null },
  );
}

/** Refuses a withheld tool on every surface; it is not merely left out of the list. */
export function requireTool({ self, withheld }: CallerContext, operation: OperationName): void {
  const { mcp: tool }: OperationSpec = OPERATIONS[operation];
  if (self === null || tool === undefined || !withheld.includes(tool)) return;
  throw new Refusal(
    "tool_not_given",
    `Your profile "${self.profile}" or your parent withholds ${tool} from you. Do this part yourself, or report to your parent what should be done.`,
    { tool },
  );
}

/** The limits of an API key: the loosest permission and the folders of sessions that it may put to work. */
export interface KeyReach {
  readonly name: string;
  readonly ceiling: Permission;
  readonly roots: readonly string[] | null;
}

export function keyReach(caller: Caller): KeyReach | null {
  return caller.kind === "outside" ? caller : null;
}

/** Returns whether a folder's real path is within `roots`. If `roots` is null, any folder is allowed. */
export function isWithin(folder: string, roots: readonly string[] | null | undefined): boolean {
  return roots == null || folderVerdict(folder, { roots, closed: [] }) === "allowed";
}

/**
 * Refuses a key that may not write to this session. A message makes the session work, so the session's
 * permission must be within the key's ceiling, and its folder within the key's folders. Cancelling is not
 * limited.
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
