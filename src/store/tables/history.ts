import type { EntryBody } from "../../contract/index.ts";
import type { EntryIndex } from "../search/entry-index.ts";
import type { Listeners } from "../listener.ts";
import type {
  FolderCount,
  HistoryReads,
  HistoryStatus,
  HistoryWrites,
  Imports,
  ImportedEntry,
} from "../port/store.ts";
import type { EntryRecord, HistoryKnown, HistoryRecord } from "../port/record.ts";
import { within } from "./session.ts";
import {
  numberOf,
  firstOf,
  flag,
  heldJson,
  json,
  jsonList,
  listOf,
  maybe,
  number,
  prose,
  readerOf,
  valueOf,
  valuesOf,
  word,
} from "../column.ts";
import { raw, sql, type Query, type Sql } from "../sql.ts";
import { table } from "../table.ts";

/** The reader's data is stored unchanged, because the reader has already redacted it. */
export const histories = table<HistoryRecord>(
  "history_sessions",
  {
    no: number(),
    key: word(),
    node: word(),
    agent: word(),
    agentId: word(),
    format: word(),
    path: word(),
    found: heldJson(),
    familyKey: word(),
    hostKey: maybe(word()),
    sessionId: word(),
    rootId: word(),
    kind: word(),
    stamp: word(),
    readStamp: maybe(word()),
    sizeBytes: number(),
    readBytes: number(),
    status: maybe(json()),
    missing: maybe(jsonList()),
    badCount: number(),
    bad: maybe(jsonList()),
    problem: maybe(prose()),
    changedAt: number(),
    goneAt: maybe(number()),
    facts: maybe(heldJson()),
    place: maybe(heldJson()),
  },
  { fixed: ["no", "key", "rootId", "sessionId"] },
);

const KNOWN = raw(
  "h.no, h.key, h.agent_id, h.format, h.path, h.stamp, h.read_stamp, h.kind, h.family_key, h.host_key, " +
    "h.session_id, h.root_id, h.gone_at, h.size_bytes, h.read_bytes, s.evidence_state, s.depth, " +
    "s.parent_id, s.cwd, s.scope",
);

export function historyReads(q: Query): HistoryReads {
  const { columns } = histories;
  const one = async (statement: Sql) => {
    const row = await q.get(statement);
    return row === null ? null : histories.record(row);
  };
  const many = async (statement: Sql) => (await q.all(statement)).map(histories.record);
  return {
    byKey: (key) => one(sql`SELECT ${columns} FROM history_sessions WHERE key = ${key}`),
    bySession: (sessionId) =>
      one(sql`SELECT ${columns} FROM history_sessions WHERE session_id = ${sessionId} ORDER BY no LIMIT 1`),
    ofFamily: (familyKey, { after, limit }) =>
      many(sql`SELECT ${columns} FROM history_sessions
        WHERE family_key = ${familyKey} AND no > ${after} ORDER BY no LIMIT ${limit}`),
    async statusesOf(familyKey) {
      const rows = await q.all(sql`SELECT key, agent_id, session_id, kind, status, missing
        FROM history_sessions WHERE family_key = ${familyKey} ORDER BY no`);
      return rows.map(statusOf);
    },
    async known(node, { after, limit }) {
      const rows = await q.all(sql`SELECT ${KNOWN} FROM history_sessions h
        LEFT JOIN sessions s ON s.id = h.session_id
        WHERE h.no > ${after} AND h.node = ${node} ORDER BY h.no LIMIT ${limit}`);
      return rows.map(knownOf);
    },
    refs: (no, { after, limit }) =>
      listOf(
        q,
        sql`SELECT ref FROM history_refs
        WHERE no = ${no} AND ref > ${after} ORDER BY ref LIMIT ${limit}`,
        number(),
      ),
    ownerOfRef: ({ node, format, ref }) =>
      firstOf(
        q,
        sql`SELECT h.key FROM history_sessions h
        WHERE h.node = ${node} AND h.format = ${format} AND h.key = h.family_key AND h.kind = 'imported'
          AND EXISTS (SELECT 1 FROM history_refs r WHERE r.no = h.no AND r.ref = ${ref})
        ORDER BY h.no LIMIT 1`,
        word(),
      ),
    problems: (node, limit) =>
      many(sql`SELECT ${columns} FROM history_sessions
        WHERE node = ${node} AND (problem IS NOT NULL OR bad_count > 0) ORDER BY path, no LIMIT ${limit}`),
    problemCount: (node) =>
      numberOf(
        q,
        sql`SELECT count(*) FROM history_sessions
        WHERE node = ${node} AND (problem IS NOT NULL OR bad_count > 0)`,
      ),
    async folders(visible) {
      const rows = await q.all(sql`SELECT cwd, agent, origin,
          CASE WHEN parent_id IS NULL THEN 0 ELSE 1 END AS below,
          count(*), max(last_activity_at),
          sum(CASE WHEN origin = 'imported'
            THEN CASE WHEN evidence_state IN ('running', 'waiting', 'pending') THEN 1 ELSE 0 END
            ELSE CASE WHEN round_open = 1 AND ended_at IS NULL THEN 1 ELSE 0 END END)
        FROM sessions WHERE ${within(visible)} GROUP BY cwd, agent, origin,
          CASE WHEN parent_id IS NULL THEN 0 ELSE 1 END`);
      return rows.map(folderOf);
    },
  };
}

export function historyWrites(q: Query, rootId: string, index: EntryIndex): HistoryWrites {
  return {
    async add(record) {
      const { sizeBytes, changedAt, familyKey, hostKey } = record;
      const row = await q.get(sql`INSERT INTO history_sessions (${ADDED}) VALUES
        (${record.key}, ${record.node}, ${record.agent}, ${record.agentId}, ${record.format}, ${record.path},
        ${JSON.stringify(record.found)}, ${familyKey}, ${hostKey}, ${record.sessionId}, ${record.rootId},
        ${record.kind}, ${record.stamp}, ${sizeBytes}, 0, 0, ${record.problem}, ${changedAt},
        ${orNull(record.status)}, ${orNull(record.facts)})
        ON CONFLICT (key) DO UPDATE SET ${ANEW}
          WHERE history_sessions.kind IN ('empty', 'excluded') RETURNING no`);
      const known = row ?? (await q.get(sql`SELECT no FROM history_sessions WHERE key = ${record.key}`));
      return valueOf(known?.[0], number(), "history_sessions.no");
    },
    async patch(no, patch) {
      const set = histories.set(patch);
      if (set !== null) await q.run(sql`UPDATE history_sessions SET ${set} WHERE no = ${no}`);
    },
    append: (at, entries) => append(q, { ...at, rootId, index }, entries),
  };
}

const ADDED = raw(
  "key, node, agent, agent_id, format, path, found, family_key, host_key, session_id, root_id, kind, stamp, " +
    "size_bytes, read_bytes, bad_count, problem, changed_at, status, facts",
);
const ANEW = raw(
  ["node", "path", "found", "family_key", "session_id", "root_id", "kind", "stamp", "size_bytes", "problem"]
    .concat(["changed_at", "status", "facts"])
    .map((column) => `${column} = excluded.${column}`)
    .join(", "),
);

function orNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/** Few enough for the statement to be cached and to stay below the parameter limit. */
const ROWS_MAX = 32;

interface AppendAt {
  readonly no: number;
  readonly sessionId: string;
  readonly rootId: string;
  /** True: searchable from the commit on. False: searchable once the indexer has reached it. */
  readonly isLive: boolean;
  readonly index: EntryIndex;
}

/**
 * Appends, in order, the entries whose refs the session does not have yet. Their bodies are JSON that was
 * made and redacted elsewhere; no other write trusts its caller with both.
 */
async function append(
  q: Query,
  at: AppendAt,
  entries: readonly ImportedEntry[],
): Promise<{ first: number; appended: ImportedEntry[] }> {
  const { no, sessionId, rootId, isLive, index } = at;
  const counted = await q.get(sql`SELECT entry_count, agent, scope FROM sessions
    WHERE id = ${sessionId} AND root_id = ${rootId}`);
  if (counted === null) throw new Error(`there is no session ${sessionId} in tree ${rootId}`);
  const [first, agent, scope] = valuesOf(counted, number(), word(), word());
  const appended: ImportedEntry[] = [];
  for (let start = 0; start < entries.length; start += ROWS_MAX) {
    const slice = entries.slice(start, start + ROWS_MAX);
    const added = await addRefs(q, no, slice);
    const fresh = slice.filter(({ ref }) => added.delete(ref));
    if (fresh.length === 0) continue;
    const where = { rootId, sessionId, from: first + appended.length };
    if (isLive) await index.insert(q, recordsOf(where, fresh), { agent, scope });
    else await q.run(entryRows(where, fresh));
    appended.push(...fresh);
  }
  if (appended.length > 0) {
    await q.run(
      sql`UPDATE sessions SET entry_count = entry_count + ${appended.length} WHERE id = ${sessionId}`,
    );
  }
  return { first, appended };
}

interface Where {
  readonly rootId: string;
  readonly sessionId: string;
  readonly from: number;
}

const BODY = json<EntryBody>();

function recordsOf({ rootId, sessionId, from }: Where, entries: readonly ImportedEntry[]): EntryRecord[] {
  return entries.map(({ author, kind, isSubagent, at, body }, i) => {
    const own = { author, kind, isSubagent, at, body: valueOf(body, BODY, "the body of an imported entry") };
    return { rootId, sessionId, index: from + i, turnId: null, ...own };
  });
}

const REF = number();

/** Returns the refs that the session did not have. */
async function addRefs(q: Query, no: number, entries: readonly ImportedEntry[]): Promise<Set<number>> {
  const rows = await q.all({
    text: `INSERT INTO history_refs (no, ref) VALUES ${entries.map(() => "(?, ?)").join(", ")}
      ON CONFLICT DO NOTHING RETURNING ref`,
    params: entries.flatMap(({ ref }) => [no, ref]),
  });
  return new Set(rows.map((row) => valueOf(row[0], REF)));
}

function entryRows(at: Where, entries: readonly ImportedEntry[]): Sql {
  const width = "(?, ?, ?, NULL, ?, ?, ?, ?, ?)";
  return {
    text: `INSERT INTO entries (root_id, session_id, idx, turn_id, author, kind, is_subagent, at, body)
      VALUES ${entries.map(() => width).join(", ")}`,
    params: entries.flatMap(({ author, kind, isSubagent, at: time, body }, i) => [
      at.rootId,
      at.sessionId,
      at.from + i,
      author,
      kind,
      isSubagent ? 1 : 0,
      time,
      body,
    ]),
  };
}

const statusOf = readerOf<HistoryStatus>({
  key: word(),
  agentId: word(),
  sessionId: word(),
  kind: word(),
  status: maybe(json()),
  missing: maybe(jsonList()),
});

const folderOf = readerOf<FolderCount>({
  cwd: word(),
  agent: word(),
  origin: word(),
  isBelow: flag(),
  count: number(),
  lastActivityAt: number(),
  atWork: number(),
});

const knownOf = readerOf<HistoryKnown>({
  no: number(),
  key: word(),
  agentId: word(),
  format: word(),
  path: word(),
  stamp: word(),
  readStamp: maybe(word()),
  kind: word(),
  familyKey: word(),
  hostKey: maybe(word()),
  sessionId: word(),
  rootId: word(),
  goneAt: maybe(number()),
  sizeBytes: number(),
  readBytes: number(),
  state: maybe(word()),
  depth: maybe(number()),
  parentId: maybe(word()),
  cwd: maybe(word()),
  scope: maybe(word()),
});

/** The import request and its progress belong to no tree. */
export function importsOver(at: {
  readonly node: string;
  readonly reader: Query;
  readonly plain: <T>(work: (q: Query) => Promise<T>) => Promise<T>;
  readonly listeners: Pick<Listeners, "asked" | "onAsk">;
  /** Called when there may be entries that are not indexed yet. */
  readonly told: () => void;
}): Imports {
  const { node, reader, plain, listeners } = at;
  const read = <T extends object>(key: string): Promise<T | null> =>
    firstOf(reader, sql`SELECT value FROM meta WHERE key = ${key}`, json<T>());
  const keep = (key: string, value: unknown): Promise<number> =>
    plain((q) =>
      q.run(sql`INSERT INTO meta (key, value) VALUES (${key}, ${JSON.stringify(value)})
        ON CONFLICT (key) DO UPDATE SET value = excluded.value`),
    );
  return {
    asked: () => read(`history.asked.${node}`),
    async ask(asked) {
      await keep(`history.asked.${node}`, asked);
      listeners.asked();
    },
    scan: () => read(`history.scan.${node}`),
    async publish(progress) {
      await keep(`history.scan.${node}`, progress);
      // The indexer waits until a scan has ended, because both need the same write lane.
      if (progress.scan.phase !== "reading") at.told();
    },
    onAsk: (listener) => listeners.onAsk(listener),
  };
}
