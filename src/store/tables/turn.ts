import type { Receipt, Usage } from "../../contract/index.ts";
import { redactBriefly } from "../../secrets/redact-long.ts";
import type { TurnReads, TurnWrites } from "../port/store.ts";
import { type Spent, SPENT, TURN, type TurnRecord } from "../port/record.ts";
import { json, maybe, number, numberOf, reading, readerOf, valueOf, valuesOf, word } from "../column.ts";
import { raw, sql, type Query, type Row } from "../sql.ts";
import { table } from "../table.ts";

/** Receipts are in a separate table: one row per settled turn. */
export const turns = table<Omit<TurnRecord, "receipt">>("turns", TURN, {
  fixed: ["id", "rootId", "sessionId", "index"],
  named: { index: "idx" },
  derived: [
    { column: "tokens", from: "usage", value: (turn) => tokensOf(turn.usage) },
    { column: "usd", from: "usage", value: (turn) => turn.usage?.usd ?? null },
    { column: "estimated", from: "usage", value: (turn) => (turn.usage?.estimated ? 1 : 0) },
  ],
});

export function turnReads(q: Query): TurnReads {
  const { one, many } = reading(q, withReceipt);
  return {
    byId: (id) => one(sql`${SELECT} WHERE t.id = ${id}`),
    running: (sessionId) =>
      one(sql`${SELECT} WHERE t.session_id = ${sessionId} AND t.status = 'running'
        ORDER BY t.idx DESC LIMIT 1`),
    ofRound: (sessionId, round) =>
      many(sql`${SELECT} WHERE t.session_id = ${sessionId} AND t.round = ${round} ORDER BY t.idx`),
    last: (sessionId) => one(sql`${SELECT} WHERE t.session_id = ${sessionId} ORDER BY t.idx DESC LIMIT 1`),
    ofSession(sessionId, { beforeIndex, limit }) {
      const before = beforeIndex === undefined ? NOTHING : sql` AND t.idx < ${beforeIndex}`;
      return many(
        sql`${SELECT} WHERE t.session_id = ${sessionId}${before} ORDER BY t.idx DESC LIMIT ${limit}`,
      );
    },
    slotsHeld: (node) =>
      numberOf(
        q,
        sql`SELECT count(*) FROM turns WHERE node = ${node} AND status = 'running' AND blocked = 0`,
      ),
    runningOn: (node) =>
      many(sql`${SELECT} WHERE t.node = ${node} AND t.status = 'running' ORDER BY t.started_at, t.id`),
    spentBelow: (sessionId, withoutTurnId) => spentBelow(q, sessionId, withoutTurnId),
    async largest(rootId, profile) {
      const row = await q.get(sql`SELECT coalesce(max(t.tokens), 0), coalesce(max(t.usd), 0)
        FROM turns t JOIN sessions s ON s.id = t.session_id
        WHERE t.root_id = ${rootId} AND s.profile = ${profile} AND t.estimated = 0`);
      const [tokens, usd] = valuesOf(row ?? [0, 0], number(), number());
      return { tokens, usd };
    },
  };
}

export function turnWrites(q: Query, rootId: string): TurnWrites {
  return {
    async add(turn) {
      const counted = await q.get(sql`UPDATE sessions SET turn_count = turn_count + 1
        WHERE id = ${turn.sessionId} AND root_id = ${rootId} RETURNING turn_count`);
      if (counted === null) throw new Error(`there is no session ${turn.sessionId} in tree ${rootId}`);
      const record: TurnRecord = { ...turn, rootId, index: valueOf(counted[0], number()) - 1 };
      await q.run(turns.insert([record]));
      if (record.receipt !== null) await putReceipt(q, record, record.receipt);
      return record;
    },
    async patchRunning(id, fence, patch) {
      const set = turns.set(patch) ?? KEEP;
      const row = await q.get(sql`UPDATE turns SET ${set}
        WHERE id = ${id} AND root_id = ${rootId} AND fence = ${fence} AND status = 'running'
        RETURNING session_id`);
      if (row === null) return false;
      if (patch.receipt)
        await putReceipt(q, { id, rootId, sessionId: valueOf(row[0], word()) }, patch.receipt);
      return true;
    },
  };
}

const spentIn = readerOf(SPENT);

async function spentBelow(q: Query, sessionId: string, withoutTurnId: string | null): Promise<Spent> {
  const row = await q.get(sql`WITH RECURSIVE below (id) AS (
      SELECT id FROM sessions WHERE id = ${sessionId}
      UNION ALL
      SELECT s.id FROM sessions s JOIN below b ON s.parent_id = b.id WHERE s.origin = 'managed')
    SELECT coalesce(sum(t.tokens), 0), coalesce(sum(t.usd), 0), coalesce(sum(t.reserved_tokens), 0),
      coalesce(sum(t.reserved_usd), 0), count(*)
    FROM turns t JOIN below b ON b.id = t.session_id WHERE t.id <> ${withoutTurnId ?? ""}`);
  return spentIn(row ?? [0, 0, 0, 0, 0]);
}

const NOTHING = raw("");
const KEEP = raw("status = status");
const SELECT = raw(
  `SELECT ${turns.columnsOf("t").text}, r.body FROM turns t LEFT JOIN receipts r ON r.turn_id = t.id`,
);
const RECEIPT = maybe(json<Receipt>());
const RECEIPT_AT = turns.columns.text.split(", ").length;

function withReceipt(row: Row): TurnRecord {
  return { ...turns.record(row), receipt: valueOf(row[RECEIPT_AT], RECEIPT, "receipts.body") };
}

async function putReceipt(
  q: Query,
  turn: { id: string; rootId: string; sessionId: string },
  receipt: Receipt,
): Promise<void> {
  await q.run(sql`INSERT INTO receipts (turn_id, root_id, session_id, body)
    VALUES (${turn.id}, ${turn.rootId}, ${turn.sessionId}, ${JSON.stringify(redactBriefly(receipt))})
    ON CONFLICT (turn_id) DO UPDATE SET body = excluded.body`);
}

function tokensOf(usage: Usage | undefined): number {
  return usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;
}
