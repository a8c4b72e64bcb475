import { Refusal } from "../../contract/refusal.ts";
import type { Reads, SessionRecord } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";
import { callerSession } from "./authority.ts";
import { describe } from "../read/view.ts";
import type { CallerContext } from "../port.ts";

/** The most sessions that the store returns for one reference. */
const CANDIDATES_MAX = 10;

/** Returns the session that a caller names and may open. A session may open only sessions of its own tree. */
export async function resolve(
  deps: OperationDeps,
  caller: CallerContext,
  ref: string,
): Promise<SessionRecord> {
  const self = callerSession(caller);
  if (self?.id === ref) return self;
  const found = await candidates(deps, caller, { self, ref });
  const own = found.filter((session) => isFamily(self, session));
  if (own.length === 0 && found.length > 0) throw notFamily(found[0]!);
  return one(deps, caller, { self, ref, visible: own });
}

/** Like `resolve`, but among all sessions that a listing shows to the caller, not only those it may open. */
export async function resolveInScope(
  deps: OperationDeps,
  caller: CallerContext,
  ref: string,
): Promise<SessionRecord> {
  const self = callerSession(caller);
  return one(deps, caller, { self, ref, visible: await candidates(deps, caller, { self, ref }) });
}

/** Returns whether a caller may open a session it can see. A session may open only sessions of its tree. */
export function isFamily(self: SessionRecord | null, session: { rootId: string }): boolean {
  return self === null || session.rootId === self.rootId;
}

async function one(
  deps: OperationDeps,
  caller: CallerContext,
  { self, ref, visible }: Wanted & { readonly visible: readonly SessionRecord[] },
): Promise<SessionRecord> {
  const exact = visible.find((session) => session.id === ref);
  if (exact !== undefined) return exact;
  const byName = visible.filter((session) => session.name === ref);
  const named =
    meant(byName.filter((session) => session.parentId === self?.id)) ??
    meant(byName.filter((session) => session.rootId === self?.rootId)) ??
    meant(byName);
  const fitting = named ?? (visible.length === 0 ? null : visible);
  if (fitting === null) throw await unknown(deps, caller, { self, ref });
  if (fitting.length === 1) return fitting[0]!;
  const ids = fitting.map((session) => session.id);
  throw new Refusal(
    "ambiguous_reference",
    `"${ref}" fits ${fitting.length} sessions. Use an id: ${fitting.map(({ shortId }) => shortId).join(", ")}.`,
    { ids },
  );
}

function notFamily(session: SessionRecord): Refusal {
  return new Refusal(
    "forbidden",
    `${describe(session)} belongs to another family, and only that family may open it. session_search shows excerpts; list_sessions shows your family.`,
    { sessionId: session.id },
  );
}

/** Returns the sessions whose round is open; if there is none, the newest session; null for an empty list. */
function meant(named: readonly SessionRecord[]): readonly SessionRecord[] | null {
  if (named.length === 0) return null;
  const open = named.filter(({ roundOpen, endedAt }) => roundOpen && endedAt === null);
  return open.length > 0 ? open : named.slice(0, 1);
}

interface Wanted {
  readonly self: SessionRecord | null;
  readonly ref: string;
}

/**
 * Returns the sessions that `ref` may mean. If the store returned as many sessions as it may, it may have
 * left out some of the caller's family. So the family's sessions with this name are put first.
 */
async function candidates(
  deps: OperationDeps,
  { visible }: CallerContext,
  { self, ref }: Wanted,
): Promise<SessionRecord[]> {
  const found = await deps.store.read.sessions.byRef(ref, visible);
  if (self === null || found.length < CANDIDATES_MAX) return found;
  const family = await deps.store.read.sessions.tree(self.rootId);
  const named = family.filter((session) => session.name === ref);
  return [...named.toReversed(), ...found];
}

/**
 * Returns whether `session` is a descendant of `ancestorId`. A detached session, and everything below it, no
 * longer counts as a descendant.
 */
export async function isBelow(reads: Reads, session: SessionRecord, ancestorId: string): Promise<boolean> {
  let at: SessionRecord | null = session;
  while (at !== null && at.parentId !== null && at.detachedAt === null) {
    if (at.parentId === ancestorId) return true;
    at = await reads.sessions.byId(at.parentId);
  }
  return false;
}

/** Refuses a session that acts outside its descendants. A person or an API key may act on any session. */
export async function requireBelow(
  deps: OperationDeps,
  caller: CallerContext,
  session: SessionRecord,
): Promise<void> {
  if (caller.kind !== "session") return;
  if (await isBelow(deps.store.read, session, caller.id)) return;
  throw new Refusal(
    "not_a_child",
    `${describe(session)} is not below you. You may act on your own children and those below them; list_sessions shows them.`,
    { sessionId: session.id },
  );
}

async function unknown(
  deps: OperationDeps,
  { visible }: CallerContext,
  { self, ref }: Wanted,
): Promise<Refusal> {
  const near =
    self === null
      ? await deps.store.read.sessions.list({ visible, limit: 5 })
      : await deps.store.read.sessions.children(self.id);
  const names = near.slice(-5).map((session) => session.name ?? session.shortId);
  const none = self === null ? "There are none yet." : "You have no children yet.";
  const known = names.length === 0 ? none : `Known: ${names.join(", ")}.`;
  const next = self === null ? "kinfold ls --all shows all." : "list_sessions shows your family.";
  return new Refusal("not_found", `No session "${ref.slice(0, 80)}". ${known} ${next}`, {
    ref,
    known: names,
  });
}

/** An imported session has no agent that could take messages from its inbox. */
export function refuseImported(session: { origin: string; shortId: string; agent: string }): void {
  if (session.origin !== "imported") return;
  throw new Refusal(
    "not_available",
    `Session ${session.shortId} was read from disk: Kinfold does not run it, so nothing can be sent to it and no limit holds it. Go on with it in ${session.agent} itself, or start a new session.`,
    { sessionId: session.shortId },
  );
}
