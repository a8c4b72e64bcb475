import { redactBriefly } from "../../secrets/redact-long.ts";
import { DRAFT, type DraftReads, type DraftRecord, type DraftWrites } from "../port/draft.ts";
import type { EntryRecord } from "../port/record.ts";
import { numberOf, number, valueOf } from "../column.ts";
import { sql, type Query } from "../sql.ts";
import { table } from "../table.ts";

export const drafts = table<DraftRecord>("drafts", DRAFT, { named: { end: "ending" } });

export function draftReads(q: Query): DraftReads {
  return {
    async ofSession(sessionId) {
      const row = await q.get(sql`SELECT s.entry_count, ${drafts.columnsOf("d")}
        FROM drafts d JOIN sessions s ON s.id = d.session_id WHERE d.session_id = ${sessionId}`);
      return row === null ? null : openEntry(drafts.record(row.slice(1)), valueOf(row[0], number()));
    },
    async hasBegun({ id, sessionId, attempt, attemptFrom, reportedAttempt, servedAttempt }) {
      if (Math.max(reportedAttempt, servedAttempt) >= attempt) return true;
      const row = await q.get(sql`SELECT 1 FROM drafts WHERE session_id = ${sessionId} AND turn_id = ${id}
        UNION ALL SELECT 1 FROM entries WHERE session_id = ${sessionId} AND idx >= ${attemptFrom}
          AND turn_id = ${id} AND author IN ('agent', 'tool') LIMIT 1`);
      return row !== null;
    },
  };
}

export function openEntry(draft: DraftRecord, index: number): EntryRecord {
  const { rootId, sessionId, turnId, kind, text, end, at } = draft;
  const body = { text: text + end, open: true };
  return { rootId, sessionId, index, turnId, author: "agent", kind, body, isSubagent: false, at };
}

export function draftWrites(q: Query, rootId: string): DraftWrites {
  return {
    async put({ isClean, ...draft }) {
      const { text, end } = cleanOf({ ...draft, isClean });
      await q.run(sql`${drafts.insert([{ ...draft, text, end, rootId }])}
        ON CONFLICT (session_id) DO UPDATE SET turn_id = excluded.turn_id, kind = excluded.kind,
          text = excluded.text, ending = excluded.ending, at = excluded.at, updated_at = excluded.updated_at`);
      return numberOf(q, sql`SELECT entry_count FROM sessions WHERE id = ${draft.sessionId}`);
    },
    async grow({ sessionId, id }, { at, ...by }) {
      const { text, end } = cleanOf(by);
      // Appends only the new text. Otherwise a long message would be sent again in full every second.
      const changed = await q.run(sql`UPDATE drafts
        SET text = text || ${text}, ending = ${end}, updated_at = ${at}
        WHERE session_id = ${sessionId} AND root_id = ${rootId} AND turn_id = ${id}`);
      return changed === 1;
    },
    async remove(sessionId) {
      await q.run(sql`DELETE FROM drafts WHERE session_id = ${sessionId} AND root_id = ${rootId}`);
    },
  };
}

function cleanOf(draft: { text: string; end: string; isClean?: boolean | undefined }): {
  text: string;
  end: string;
} {
  const { text, end, isClean } = draft;
  return isClean === true ? { text, end } : redactBriefly({ text, end });
}
