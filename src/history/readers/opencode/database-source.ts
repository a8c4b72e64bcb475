import type { BadLine } from "../../port.ts";
import { type Database, type NamedRow, openDatabase, type Table } from "../../sqlite/database.ts";
import { asObject, asText, type JsonObject } from "../../lines/value.ts";
import {
  badRecord,
  byId,
  countUpTo,
  PartBudget,
  type Message,
  parsedRecord,
  type Part,
  type SessionRecord,
  type Source,
} from "./source.ts";

/** Columns differ between versions. Only the columns in `NEEDED` are required. */
export interface Tables {
  readonly session: Table;
  readonly message: Table;
  readonly part: Table;
}

const NEEDED = {
  session: ["id"],
  message: ["id", "session_id", "data"],
  part: ["id", "message_id", "data"],
} as const;

/** Throws with a reason if the database is not an OpenCode database. */
export function tablesOf(database: Database): Tables {
  const found = Object.entries(NEEDED).map(([name, columns]): [string, Table] => {
    const table = database.table(name);
    if (table === null) throw new Error(`it has no table of ${name}s`);
    const missing = columns.find((column) => !table.columns.has(column));
    if (missing !== undefined) throw new Error(`its table of ${name}s has no column ${missing}`);
    return [name, table];
  });
  return Object.fromEntries(found) as unknown as Tables;
}

/** Reads one session from a database. The agent may write meanwhile, so call `settled` after each read. */
export function databaseSource(
  { path, id, rowid }: { path: string; id: string; rowid: number | null },
  recordBytesMax: number,
): Source {
  let { database, tables } = openTables(path);
  let listed: Listed | null = null;
  const list = (): Listed => (listed ??= listMessages(tables, id));
  const rowOf = (messageId: string): NamedRow | null => {
    const { ids, rowids } = list();
    const at = countUpTo(ids, messageId) - 1;
    return ids[at] === messageId ? tables.message.at(rowids[at] as number) : null;
  };
  return {
    isFrozen: false,
    session: async () => sessionIn(tables, id, rowid),
    messageIds: async () => list().ids,
    message: async (messageId) => {
      try {
        const row = rowOf(messageId);
        return row === null ? null : messageOf(tables, row, { id: messageId, recordBytesMax });
      } catch (error) {
        // If a page of the database is damaged, only the rows on that page are lost.
        const bad = [badRecord(`message ${messageId}`, `cannot be read: ${(error as Error).message}`)];
        return { id: messageId, data: {}, parts: [], bad, bytes: 0 };
      }
    },
    roleOf: async (messageId) => {
      const row = rowOf(messageId);
      const data = row === null ? null : dataOf(row, recordBytesMax);
      return typeof data === "string" ? null : asText(data?.["role"]);
    },
    async settled() {
      if (database.isStill()) return true;
      database.close();
      ({ database, tables } = openTables(path));
      listed = null;
      return false;
    },
    close: () => database.close(),
  };
}

interface Listed {
  readonly ids: readonly string[];
  readonly rowids: Float64Array;
}

/** No real session has this many messages. This many ids take about 14 MB of memory. */
const MESSAGES_MAX = 250_000;

function listMessages({ message }: Tables, sessionId: string): Listed {
  const found: { id: string; rowid: number }[] = [];
  for (const row of message.where("session_id", sessionId)) {
    const id = row.text("id");
    if (id === null) continue;
    if (found.length === MESSAGES_MAX)
      throw new Error(`session ${sessionId} has more than ${MESSAGES_MAX} messages`);
    found.push({ id, rowid: row.rowid });
  }
  found.sort(byId);
  return { ids: found.map(({ id }) => id), rowids: Float64Array.from(found, ({ rowid }) => rowid) };
}

function openTables(path: string): { database: Database; tables: Tables } {
  const database = openDatabase(path);
  try {
    return { database, tables: tablesOf(database) };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The rowid is only a hint: it changes when the database is vacuumed. */
function sessionIn({ session }: Tables, id: string, rowid: number | null): SessionRecord | null {
  const hinted = rowid === null ? null : session.at(rowid);
  if (hinted?.text("id") === id) return sessionOf(hinted);
  for (const row of session.rows()) if (row.text("id") === id) return sessionOf(row);
  return null;
}

/** Longer texts are left out to save memory, because the list of sessions reads every session's row. */
const SESSION_TEXT_BYTES_MAX = 64 * 1024;

export function sessionOf(row: NamedRow): SessionRecord {
  const text = (column: string): string | null =>
    row.bytes(column) > SESSION_TEXT_BYTES_MAX ? null : row.text(column);
  const revert = text("revert");
  const reverted = revert === null ? null : parsedRecord(revert, 0, 1);
  return {
    id: text("id") ?? "",
    parentId: text("parent_id"),
    title: text("title"),
    directory: text("directory"),
    version: text("version"),
    agent: text("agent"),
    createdAt: row.number("time_created"),
    revertId: typeof reverted === "string" ? null : asText(reverted?.["messageID"]),
  };
}

function messageOf(
  { part }: Tables,
  row: NamedRow,
  { id, recordBytesMax }: { id: string; recordBytesMax: number },
): Message | null {
  const bad: BadLine[] = [];
  const data = dataOf(row, recordBytesMax);
  if (typeof data === "string") bad.push(badRecord(`message ${id}`, data));
  const parts: Part[] = [];
  const held = new PartBudget(recordBytesMax);
  let bytes = row.bytes("data");
  for (const partRow of part.where("message_id", id)) {
    const partId = partRow.text("id");
    const partBytes = partRow.bytes("data");
    if (!held.hasRoom(partBytes)) {
      bad.push(badRecord(`message ${id}`, held.why(`part ${partId}`)));
      break;
    }
    const content = dataOf(partRow, recordBytesMax);
    bytes += partBytes;
    if (typeof content === "string") bad.push(badRecord(`part ${partId}`, content));
    else if (partId !== null)
      parts.push({ id: partId, data: content, createdAt: partRow.number("time_created") });
  }
  return { id, data: asObject(data) ?? {}, parts: parts.toSorted(byId), bad, bytes };
}

function dataOf(row: NamedRow, recordBytesMax: number): JsonObject | string {
  const bytes = row.bytes("data");
  return parsedRecord(bytes > recordBytesMax ? null : row.text("data"), bytes, recordBytesMax);
}
