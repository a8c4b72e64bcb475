import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";

export interface SessionRow {
  readonly id: string;
  readonly rootId: string;
  readonly parentId: string | null;
  readonly name: string | null;
  readonly round: number;
  readonly roundOpen: number | boolean;
  readonly outcome: string | null;
  readonly outcomeReason: string | null;
  readonly endedAt: number | null;
  readonly detachedAt: number | null;
  readonly held: string | null;
  readonly callback: { readonly enabled: boolean; readonly when: string };
  readonly effective: { readonly permission: string };
  readonly agentSessionId: string | null;
  readonly entryCount: number;
}

export interface TurnRow {
  readonly id: string;
  readonly sessionId: string;
  readonly idx: number;
  readonly status: string;
  readonly attempt: number;
  readonly stopReason: string | null;
  readonly stopBy: string | null;
  readonly error: string | null;
}

export interface MessageRow {
  readonly id: string;
  readonly sessionId: string;
  readonly position: number;
  readonly kind: string;
  readonly senderKind: string;
  readonly senderId: string | null;
  readonly delivery: string;
  readonly status: string;
  readonly carrier: string | null;
  readonly deliveryId: string;
  readonly key: string | null;
  readonly callbackKey: string | null;
  readonly turnId: string | null;
  readonly repeated: number | boolean;
  readonly voidReason: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface EntryRow {
  readonly sessionId: string;
  readonly idx: number;
  readonly turnId: string | null;
  readonly author: string;
  readonly kind: string;
  readonly body: { readonly text?: string; readonly messageId?: string; readonly callId?: string };
}

export interface EventRow {
  readonly rootId: string;
  readonly seq: number;
  readonly xid: number;
  readonly sessionId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface TriggerRow {
  readonly id: string;
  readonly sessionId: string;
  readonly type: string;
  readonly status: string;
}

export interface LeaseRow {
  readonly sessionId: string;
  readonly id: string;
  readonly pid: number | null;
}

/** The rows that the checks of a storm use, read directly from the database. */
export interface Tables {
  readonly sessions: readonly SessionRow[];
  readonly turns: readonly TurnRow[];
  readonly messages: readonly MessageRow[];
  readonly entries: readonly EntryRow[];
  readonly events: readonly EventRow[];
  readonly triggers: readonly TriggerRow[];
  readonly leases: readonly LeaseRow[];
  readonly trees: readonly { readonly rootId: string; readonly seq: number }[];
}

const NAMES = ["sessions", "turns", "messages", "entries", "events", "triggers", "leases", "trees"] as const;
const JSON_COLUMNS = new Set(["callback", "effective", "metadata", "body", "data"]);

/** `store` is `sqlite` or the address of the PostgreSQL server. */
export async function readTables(home: string, store: string): Promise<Tables> {
  const read = store === "sqlite" ? sqliteTables(home) : await postgresTables(store);
  return Object.fromEntries(
    NAMES.map((name) => [name, read[name]!.map((row) => rowOf(row, name === "messages"))]),
  ) as unknown as Tables;
}

type Raw = Readonly<Record<string, unknown>>;

function sqliteTables(home: string): Record<string, Raw[]> {
  const db = new DatabaseSync(path.join(home, "kinfold.db"), { readOnly: true });
  try {
    // Read all tables in one transaction, because the daemon may write between two reads.
    db.exec("BEGIN");
    return Object.fromEntries(
      NAMES.map((name) => [name, db.prepare(`SELECT * FROM ${name}`).all() as Raw[]]),
    );
  } finally {
    db.close();
  }
}

async function postgresTables(store: string): Promise<Record<string, Raw[]>> {
  const url = new URL(store);
  const schema = url.searchParams.get("schema") ?? "kinfold";
  url.searchParams.delete("schema");
  const client = new pg.Client({ connectionString: url.href, types: { getTypeParser } });
  await client.connect();
  try {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    const tables: Record<string, Raw[]> = {};
    for (const name of NAMES) {
      tables[name] = (await client.query<Raw>(`SELECT * FROM "${schema}".${name}`)).rows;
    }
    return tables;
  } finally {
    await client.end();
  }
}

function rowOf(raw: Raw, hasPlainBody: boolean): Raw {
  return Object.fromEntries(
    Object.entries(raw).map(([column, value]) => {
      const name = column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      const isJson =
        JSON_COLUMNS.has(column) && typeof value === "string" && !(hasPlainBody && column === "body");
      return [name, isJson ? JSON.parse(value) : value];
    }),
  );
}

const BIGINT = 20;

/** The driver returns bigint columns as text; every value here fits into a number. */
function getTypeParser(type: number, format?: "text" | "binary"): unknown {
  return type === BIGINT ? Number : pg.types.getTypeParser(type, format as "text");
}
