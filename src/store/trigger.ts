import type { TriggerReads, TriggerWrites } from "./port.ts";
import type { TriggerRecord } from "./record.ts";
import { sql, type Query } from "./sql.ts";
import { table } from "./table.ts";

export const triggers = table<TriggerRecord>(
  "triggers",
  {
    id: "plain",
    rootId: "plain",
    sessionId: "plain",
    toId: "plain",
    toPerson: "bool",
    type: "plain",
    payload: "json",
    status: "plain",
    round: "plain",
    personAt: "plain",
    defaultAt: "plain",
    default: "plain",
    originalId: "plain",
    context: "plain",
    answer: "json",
    seenAt: "plain",
    fence: "plain",
    createdAt: "plain",
    closedAt: "plain",
  },
  { fixed: ["id", "rootId", "sessionId", "createdAt"], named: { default: "default_answer" } },
);

export function triggerReads(q: Query): TriggerReads {
  const { columns } = triggers;
  return {
    async byId(id) {
      const row = await q.get(sql`SELECT ${columns} FROM triggers WHERE id = ${id}`);
      return row === null ? null : triggers.record(row);
    },
    async ofSession(sessionId) {
      const rows = await q.all(sql`SELECT ${columns} FROM triggers
        WHERE session_id = ${sessionId} ORDER BY created_at, id`);
      return rows.map(triggers.record);
    },
    async byRef(ref) {
      const rows = await q.all(sql`SELECT ${columns} FROM triggers
        WHERE id = ${ref} OR id LIKE ${`%${ref.replaceAll(/[%_]/g, "")}`}
        ORDER BY created_at DESC LIMIT 5`);
      return rows.map(triggers.record);
    },
    async open(of) {
      const rows = await q.all(sql`SELECT ${columns} FROM triggers WHERE status = 'open'
        AND type IN ('ask_user_question', 'plan_review', 'permission', 'escalate')
        ORDER BY created_at, id LIMIT 1000`);
      return rows.map(triggers.record).filter((trigger) => fits(trigger, of));
    },
    async due(now) {
      const rows = await q.all(sql`SELECT ${columns} FROM triggers WHERE status = 'open'
        AND (person_at <= ${now} OR default_at <= ${now}) ORDER BY created_at LIMIT 100`);
      return rows.map(triggers.record);
    },
    async withDeadline() {
      const rows = await q.all(sql`SELECT ${columns} FROM triggers WHERE status = 'open'
        AND (person_at IS NOT NULL OR default_at IS NOT NULL)`);
      return rows.map(triggers.record);
    },
    async openCount(sessionId) {
      const row = await q.get(sql`SELECT count(*) FROM triggers
        WHERE session_id = ${sessionId} AND status = 'open'
          AND type IN ('ask_user_question', 'plan_review', 'permission')`);
      return row?.[0] as number;
    },
  };
}

export function triggerWrites(q: Query, rootId: string): TriggerWrites {
  return {
    async add(trigger) {
      await q.run(triggers.insert([{ ...trigger, rootId }]));
    },
    async patch(id, patch) {
      const set = triggers.set(patch);
      if (set === null) return true;
      const changed = await q.run(sql`UPDATE triggers SET ${set}
        WHERE id = ${id} AND root_id = ${rootId} AND status = 'open'`);
      return changed === 1;
    },
    async seen(id, at) {
      await q.run(sql`UPDATE triggers SET seen_at = ${at} WHERE id = ${id} AND root_id = ${rootId}`);
    },
    async close(id, patch) {
      const set = triggers.set(patch);
      if (set === null) throw new Error(`trigger ${id} is closed without saying how`);
      const changed = await q.run(sql`UPDATE triggers SET ${set}
        WHERE id = ${id} AND root_id = ${rootId} AND status = 'open'`);
      return changed === 1;
    },
  };
}

function fits(
  trigger: TriggerRecord,
  of: { sessionId?: string; toId?: string; toPerson?: boolean; fence?: number },
): boolean {
  if (of.sessionId !== undefined && trigger.sessionId !== of.sessionId) return false;
  if (of.toId !== undefined && trigger.toId !== of.toId) return false;
  if (of.toPerson !== undefined && trigger.toPerson !== of.toPerson) return false;
  return of.fence === undefined || trigger.fence === of.fence;
}
