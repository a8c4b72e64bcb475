import { shortId } from "../contract/short-id.ts";
import type { CallbackData } from "../domain/callback.ts";
import type { MessageRecord, Reads, SessionRecord } from "../store/port/store.ts";

/** How long the news of a cancel waits to know what became of the processes. */
const KNOWN_MS = 10_000;

export interface StopReport {
  /** Sessions whose processes had not ended. */
  readonly stopping: string[];
  /** What could not be stopped. */
  readonly left: { sessionId: string; pid: number; what: string }[];
}

/** What is known of processes that must end. A lease without a process names what could not be stopped. */
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

/** Whether a cancelled session, or one cancelled with it, has processes of which nothing is known yet. */
export async function isStopping(reads: Look, session: SessionRecord, now: number): Promise<boolean> {
  if (session.endedAt === null || now - session.endedAt >= KNOWN_MS) return false;
  return (await stopReport(reads, await endedWith(reads, session))).stopping.length > 0;
}

/** The facts of a cancelled session's callback, as they stand when it is told. */
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

/** Callbacks with what is known now; null while the processes of a cancelled child are being stopped. */
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

/** The session and those below it that have ended; the tree comes by depth. */
async function endedWith(reads: Look, session: SessionRecord): Promise<SessionRecord[]> {
  const ended = [session];
  const inside = new Set([session.id]);
  for (const each of await reads.sessions.tree(session.rootId)) {
    if (each.endedAt === null || each.parentId === null || !inside.has(each.parentId)) continue;
    inside.add(each.id);
    ended.push(each);
  }
  return ended;
}
