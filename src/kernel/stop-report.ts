import { shortId } from "../contract/short-id.ts";
import type { CallbackData } from "../domain/callback.ts";
import type { MessageRecord, Reads, SessionRecord } from "../store/port/store.ts";

/** How long the callback of a cancel waits for the processes to end. */
const KNOWN_MS = 10_000;

export interface StopReport {
  /** Sessions whose processes have not ended yet. */
  readonly stopping: string[];
  readonly left: { sessionId: string; pid: number; what: string }[];
}

/**
 * Reports which of these sessions are still stopping, and which processes of the others could not be stopped.
 * Those processes are the `descendants` of a lease whose pid is null.
 */
export async function stopReport(
  reads: Pick<Reads, "leases" | "turns">,
  sessions: readonly SessionRecord[],
): Promise<StopReport> {
  const known: StopReport = { stopping: [], left: [] };
  for (const { id } of sessions) {
    const lease = await reads.leases.bySession(id);
    const isHeld = lease !== null && (lease.pid !== null || lease.descendants.length === 0);
    if (isHeld || (await reads.turns.running(id)) !== null) known.stopping.push(id);
    else
      for (const { pid, command } of lease?.descendants ?? [])
        known.left.push({ sessionId: id, pid, what: command });
  }
  return known;
}

type Look = Pick<Reads, "sessions" | "leases" | "turns">;

/** Whether processes of a cancelled session or its descendants are still being stopped. */
export async function isStopping(reads: Look, session: SessionRecord, now: number): Promise<boolean> {
  if (session.endedAt === null || now - session.endedAt >= KNOWN_MS) return false;
  return (await stopReport(reads, await endedWith(reads, session))).stopping.length > 0;
}

/** Adds to a cancelled session's callback the processes that have not ended at this moment. */
export async function withLeft(
  reads: Look,
  session: SessionRecord,
  data: CallbackData,
): Promise<CallbackData> {
  if (session.endedAt === null || data.outcome !== "cancelled") return data;
  const { stopping, left } = await stopReport(reads, await endedWith(reads, session));
  const late = stopping.map((id) => ({ pid: null, what: `session ${shortId(id)}, which is still stopping` }));
  return { ...data, left: [...left.map(({ pid, what }) => ({ pid, what })), ...late] };
}

/** Adds to cancelled children's callbacks the processes that remain; null while some are still stopping. */
export async function callbacksKnown(
  reads: Look,
  messages: readonly MessageRecord[],
  now: number,
): Promise<MessageRecord[] | null> {
  const known: MessageRecord[] = [];
  for (const message of messages) {
    const data = message.data as unknown as CallbackData | null;
    const child = data?.outcome === "cancelled" ? await reads.sessions.byId(data.childId) : null;
    if (data === null || child === null) {
      known.push(message);
      continue;
    }
    if (await isStopping(reads, child, now)) return null;
    known.push({ ...message, data: { ...(await withLeft(reads, child, data)) } });
  }
  return known;
}

/** Returns the session and its ended descendants. One pass suffices: `tree` lists parents first. */
async function endedWith(reads: Look, session: SessionRecord): Promise<SessionRecord[]> {
  const ids = new Set<string | null>([session.id]);
  const tree = await reads.sessions.tree(session.rootId);
  const below = tree.filter(({ id, parentId, endedAt }) => {
    const isBelow = endedAt !== null && ids.has(parentId);
    if (isBelow) ids.add(id);
    return isBelow;
  });
  return [session, ...below];
}
