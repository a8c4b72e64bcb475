import type { MessageStatus } from "../../contract/index.ts";
import type { MessageReads, MessageWrites } from "../port/store.ts";
import { MESSAGE, type MessageRecord } from "../port/record.ts";
import { numberOf, number, only, reading, valueOf, word } from "../column.ts";
import { list, raw, sql, type Query, type Sql } from "../sql.ts";
import { table } from "../table.ts";

export const messages = table<MessageRecord>("messages", MESSAGE, {
  fixed: ["id", "rootId", "sessionId", "position"],
});

/** SQLite uses a partial index only if the query repeats its condition. Here `IN` is that condition. */
export const QUEUED = raw("status IN ('queued', 'taken') AND status = 'queued'");

export function messageReads(q: Query): MessageReads {
  const { columns } = messages;
  const { one, many } = reading(q, messages.record);
  const count = (statement: Sql) => numberOf(q, statement);
  return {
    byId: (id) => one(sql`SELECT ${columns} FROM messages WHERE id = ${id}`),
    byKey: (caller, key) =>
      one(sql`SELECT ${columns} FROM messages WHERE key_caller = ${caller} AND key = ${key}`),
    byDeliveryId: (sessionId, deliveryId) =>
      one(sql`SELECT ${columns} FROM messages
        WHERE session_id = ${sessionId} AND delivery_id = ${deliveryId} LIMIT 1`),
    byCallbackKey: (sessionId, callbackKey) =>
      one(sql`SELECT ${columns} FROM messages
        WHERE session_id = ${sessionId} AND callback_key = ${callbackKey}`),
    queued: (sessionId, limit) =>
      many(sql`SELECT ${columns} FROM messages WHERE session_id = ${sessionId} AND ${QUEUED}
        ORDER BY CASE WHEN kind IN ('answer', 'notice') THEN 0 ELSE 1 END, position LIMIT ${limit}`),
    ofTurn: (turnId) =>
      many(sql`SELECT ${columns} FROM messages WHERE turn_id = ${turnId} ORDER BY position`),
    ofSession: (sessionId, statuses) =>
      many(sql`SELECT ${columns} FROM messages
        WHERE session_id = ${sessionId} AND status IN ${list(statuses)} ORDER BY position`),
    callbackTurns: (sessionId, round) =>
      reading(q, only(word())).many(sql`SELECT m.turn_id FROM turns t JOIN messages m ON m.turn_id = t.id
        WHERE t.session_id = ${sessionId} AND t.round = ${round}
        GROUP BY m.turn_id HAVING min(CASE WHEN m.kind = 'callback' THEN 1 ELSE 0 END) = 1`),
    openCount: (sessionId) =>
      count(sql`SELECT count(*) FROM messages
        WHERE session_id = ${sessionId} AND status IN ('queued', 'taken')`),
    queuedCount: (sessionId) =>
      count(sql`SELECT count(*) FROM messages WHERE session_id = ${sessionId} AND ${QUEUED}`),
  };
}

/** True if no agent will receive the message from now on. Its unredacted fields must then be redacted. */
function isOver(status: MessageStatus): boolean {
  return status === "landed" || status === "void";
}

export function messageWrites(q: Query, rootId: string): MessageWrites {
  /** Returns the redacted fields to write with a status change; none if an agent may yet get the message. */
  async function redactedByMove(
    id: string,
    from: readonly MessageStatus[],
    patch: Partial<MessageRecord>,
  ): Promise<Partial<MessageRecord>> {
    if (!isOver(patch.status ?? "queued") && !from.some(isOver)) return {};
    const row = await q.get(sql`SELECT ${messages.columns} FROM messages
      WHERE id = ${id} AND root_id = ${rootId} AND status IN ${list(from)}`);
    if (row === null) return {};
    const after = { ...messages.record(row), ...patch };
    return isOver(after.status) ? messages.redacted(after) : {};
  }

  return {
    async add(message) {
      const counted = await q.get(sql`UPDATE sessions
        SET position_count = position_count + 1, message_count = message_count + 1
        WHERE id = ${message.sessionId} AND root_id = ${rootId} RETURNING position_count`);
      if (counted === null) throw new Error(`there is no session ${message.sessionId} in tree ${rootId}`);
      const record = { ...message, rootId, position: valueOf(counted[0], number()) - 1 };
      const kept = isOver(record.status) ? { ...record, ...messages.redacted(record) } : record;
      await q.run(messages.insert([kept]));
      return kept;
    },
    async move(id, from, patch) {
      const set = messages.set({ ...patch, ...(await redactedByMove(id, from, patch)) });
      if (set === null) throw new Error(`message ${id} cannot be moved: the patch is empty`);
      const changed = await q.run(sql`UPDATE messages SET ${set}
        WHERE id = ${id} AND root_id = ${rootId} AND status IN ${list(from)}`);
      return changed === 1;
    },
  };
}
