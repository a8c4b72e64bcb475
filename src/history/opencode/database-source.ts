import type { BadLine } from "../port.ts";
import { type Database, type NamedRow, openDatabase, type Table } from "../sqlite/database.ts";
import { asObject, asText } from "../value.ts";
import {
  byId,
  type Message,
  parsedRecord,
  type Part,
  type SessionRecord,
  type Source,
  type SourceLimits,
} from "./source.ts";

/** The tables that are read. Columns differ between versions: only those named here must be there. */
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

/** Throws with a reason where the database is not one of OpenCode's. */
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

/** A session in a database that its agent may be writing to at this moment. */
export function databaseSource(
  { path, id, rowid }: { path: string; id: string; rowid: number | null },
  limits: SourceLimits,
): Source {
  let database = openDatabase(path);
  let tables = orClosed(database, tablesOf);
  let rows: Map<string, NamedRow> | null = null;
  const messageRows = (): Map<string, NamedRow> => {
    rows ??= new Map(
      Array.from(tables.message.where("session_id", id), (row) => ({ id: row.text("id") ?? "", row }))
        .filter((message) => message.id !== "")
        .toSorted(byId)
        .map((message) => [message.id, message.row]),
    );
    return rows;
  };
  return {
    isFrozen: false,
    session: async () => sessionIn(tables, id, rowid),
    messageIds: async () => [...messageRows().keys()],
    message: async (messageId) => {
      const row = messageRows().get(messageId);
      try {
        return row === undefined ? null : messageOf(tables, row, { id: messageId, limits });
      } catch (error) {
        // One broken page takes no more with it than what stands on it.
        const bad = [badRow(`message ${messageId}`, `cannot be read: ${(error as Error).message}`)];
        return { id: messageId, data: {}, parts: [], bad, bytes: 0 };
      }
    },
    roleOf: async (messageId) => {
      const row = messageRows().get(messageId);
      const data = row === undefined ? null : dataOf(row, limits);
      return typeof data === "string" ? null : asText(data?.["role"]);
    },
    async settled() {
      if (database.isStill()) return true;
      database.close();
      database = openDatabase(path);
      tables = orClosed(database, tablesOf);
      rows = null;
      return false;
    },
    close: () => database.close(),
  };
}

function orClosed<T>(database: Database, look: (database: Database) => T): T {
  try {
    return look(database);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The row's number is only a hint: it changes when the database is packed. */
function sessionIn({ session }: Tables, id: string, rowid: number | null): SessionRecord | null {
  const hinted = rowid === null ? null : session.at(rowid);
  if (hinted?.text("id") === id) return sessionOf(hinted);
  for (const row of session.rows()) if (row.text("id") === id) return sessionOf(row);
  return null;
}

export function sessionOf(row: NamedRow): SessionRecord {
  const revert = row.text("revert");
  const reverted = revert === null ? null : parsedRecord(revert, 0, { recordBytesMax: 1 });
  return {
    id: row.text("id") ?? "",
    parentId: row.text("parent_id"),
    title: row.text("title"),
    directory: row.text("directory"),
    version: row.text("version"),
    agent: row.text("agent"),
    createdAt: row.number("time_created"),
    revertId: typeof reverted === "string" ? null : asText(reverted?.["messageID"]),
  };
}

function messageOf(
  { part }: Tables,
  row: NamedRow,
  { id, limits }: { id: string; limits: SourceLimits },
): Message | null {
  const bad: BadLine[] = [];
  const data = dataOf(row, limits);
  if (typeof data === "string") bad.push(badRow(`message ${id}`, data));
  const parts: Part[] = [];
  let bytes = row.bytes("data");
  for (const partRow of part.where("message_id", id)) {
    const partId = partRow.text("id");
    const content = dataOf(partRow, limits);
    bytes += partRow.bytes("data");
    if (typeof content === "string") bad.push(badRow(`part ${partId}`, content));
    else if (partId !== null)
      parts.push({ id: partId, data: content, createdAt: partRow.number("time_created") });
  }
  return { id, data: asObject(data) ?? {}, parts: parts.toSorted(byId), bad, bytes };
}

function dataOf(row: NamedRow, limits: SourceLimits): Readonly<Record<string, unknown>> | string {
  const bytes = row.bytes("data");
  return parsedRecord(bytes > limits.recordBytesMax ? null : row.text("data"), bytes, limits);
}

function badRow(what: string, reason: string): BadLine {
  return { line: null, byteOffset: null, reason: `${what} ${reason}` };
}
