import type { TriggerReads, TriggerWrites } from "../port/store.ts";
import { TRIGGER, type TriggerRecord } from "../port/record.ts";
import { numberOf, reading } from "../column.ts";
import { and, raw, sql, type Query, type Sql } from "../sql.ts";
import { table } from "../table.ts";

export const triggers = table<TriggerRecord>("triggers", TRIGGER, {
  fixed: ["id", "rootId", "sessionId", "createdAt"],
  named: { default: "default_answer" },
});

const answers = triggers.pick("id", "answer");

export function triggerReads(q: Query): TriggerReads {
  const { columns } = triggers;
  const { one, many } = reading(q, triggers.record);
  const count = (statement: Sql) => numberOf(q, statement);
  return {
    byId: (id) => one(sql`SELECT ${columns} FROM triggers WHERE id = ${id}`),
    ofSession: (sessionId) =>
      many(sql`SELECT ${columns} FROM triggers WHERE session_id = ${sessionId} ORDER BY created_at, id`),
    byRef: (ref) =>
      many(sql`SELECT ${columns} FROM triggers
        WHERE id = ${ref} OR id LIKE ${`%${ref.replaceAll(/[%_]/g, "")}`}
        ORDER BY created_at DESC LIMIT 5`),
    open: (of) =>
      many(sql`SELECT ${columns} FROM triggers WHERE ${and(conditionsOf(of))}
        ORDER BY created_at, id LIMIT 1000`),
    async due(now) {
      const found = await eitherDeadline(q, (column) => sql`${column} <= ${now} LIMIT 100`);
      return found.toSorted((a, b) => a.createdAt - b.createdAt);
    },
    withDeadline: () => eitherDeadline(q, (column) => sql`${column} >= 0`),
    openPairOf: ({ id, sessionId, originalId }) =>
      many(sql`SELECT ${columns} FROM triggers
        WHERE session_id = ${sessionId} AND status = 'open' AND (original_id = ${id} OR id = ${originalId})
        ORDER BY created_at, id`),
    async isPassedOn(id) {
      return (await q.get(sql`SELECT 1 FROM triggers WHERE original_id = ${id} LIMIT 1`)) !== null;
    },
    openCount: (sessionId) =>
      count(sql`SELECT count(*) FROM triggers WHERE session_id = ${sessionId} AND status = 'open'
        AND type IN ('ask_user_question', 'plan_review', 'permission')`),
  };
}

export function triggerWrites(q: Query, rootId: string): TriggerWrites {
  /**
   * Redacts the answer, except the answer to a vendor's own request. The vendor's process gets its answer
   * from this row, so the answer must stay unchanged until then.
   */
  async function withoutSecretAnswer(
    id: string,
    patch: Partial<TriggerRecord>,
  ): Promise<Partial<TriggerRecord>> {
    if (!patch.answer) return patch;
    const row = await q.get(sql`SELECT fence FROM triggers WHERE id = ${id} AND root_id = ${rootId}`);
    return row === null || row[0] === null ? { ...patch, ...triggers.redacted(patch) } : patch;
  }

  async function redactAnswers(which: Sql): Promise<void> {
    const rows = await q.all(sql`SELECT ${answers.columns} FROM triggers
      WHERE ${which} AND root_id = ${rootId} AND fence IS NOT NULL AND answer IS NOT NULL`);
    for (const { id, answer } of rows.map(answers.record)) {
      const set = triggers.set(triggers.redacted({ answer }));
      if (set !== null) await q.run(sql`UPDATE triggers SET ${set} WHERE id = ${id}`);
    }
  }

  async function setOpen(id: string, set: Sql): Promise<boolean> {
    const changed = await q.run(sql`UPDATE triggers SET ${set}
      WHERE id = ${id} AND root_id = ${rootId} AND status = 'open'`);
    return changed === 1;
  }

  return {
    async add(trigger) {
      await q.run(triggers.insert([{ ...trigger, rootId }]));
    },
    async patch(id, patch) {
      const set = triggers.set(patch);
      return set === null || setOpen(id, set);
    },
    async seen(id, at) {
      await q.run(sql`UPDATE triggers SET seen_at = ${at} WHERE id = ${id} AND root_id = ${rootId}`);
      await redactAnswers(sql`id = ${id}`);
    },
    async unheard(sessionId, fence) {
      await redactAnswers(sql`session_id = ${sessionId} AND fence = ${fence} AND seen_at IS NULL`);
    },
    async close(id, patch) {
      const set = triggers.set(await withoutSecretAnswer(id, patch));
      if (set === null) throw new Error(`trigger ${id} cannot be closed: the patch is empty`);
      return setOpen(id, set);
    },
  };
}

/** One statement per deadline column, because each column has its own index. */
async function eitherDeadline(q: Query, condition: (column: Sql) => Sql): Promise<TriggerRecord[]> {
  const found = new Map<string, TriggerRecord>();
  for (const [column, more] of [
    [raw("default_at"), raw("")],
    [raw("person_at"), raw("AND to_person = 0")],
  ] as const) {
    const rows = await q.all(sql`SELECT ${triggers.columns} FROM triggers
      WHERE status = 'open' ${more} AND ${column} IS NOT NULL AND ${condition(column)}`);
    for (const trigger of rows.map(triggers.record)) found.set(trigger.id, trigger);
  }
  return [...found.values()];
}

/** Filters in SQL, because thousands of unacknowledged `session_complete` triggers may be open. */
function conditionsOf(of: { sessionId?: string; toId?: string; toPerson?: boolean; fence?: number }): Sql[] {
  const isAsked = "type IN ('ask_user_question', 'plan_review', 'permission', 'escalate')";
  // Errors that a person should look at are included too. A query for one asker (`sessionId`) leaves them
  // out, because it wants only triggers that can be answered.
  const isSeen = of.sessionId === undefined ? " OR (type = 'session_error' AND to_person = 1)" : "";
  const conditions = [raw(`status = 'open' AND (${isAsked}${isSeen})`)];
  if (of.sessionId !== undefined) conditions.push(sql`session_id = ${of.sessionId}`);
  if (of.toId !== undefined) conditions.push(sql`to_id = ${of.toId}`);
  if (of.toPerson !== undefined) conditions.push(sql`to_person = ${of.toPerson ? 1 : 0}`);
  if (of.fence !== undefined) conditions.push(sql`fence = ${of.fence}`);
  return conditions;
}
