import type { EntryIndex } from "../search/entry-index.ts";
import type { Listeners } from "../listener.ts";
import type {
  HistoryKnown,
  HistoryReads,
  HistoryRecord,
  HistoryWrites,
  Imports,
  ImportedEntry,
} from "../port/store.ts";
import { FOLDER_COUNT, HISTORY, KNOWN_FIELDS, OF_SESSION } from "../port/history.ts";
import { ENTRY, type EntryRecord } from "../port/record.ts";
import { within } from "./session.ts";
import {
  firstOf,
  json,
  number,
  numberOf,
  only,
  reading,
  readerOf,
  valueOf,
  valuesOf,
  word,
} from "../column.ts";
import { inBatches, raw, sql, type Query, type Row, type Sql } from "../sql.ts";
import { table } from "../table.ts";

/** The reader's data is stored unchanged, because the reader has already redacted it. */
export const histories = table<HistoryRecord>("history_sessions", HISTORY, {
  fixed: ["no", "key", "rootId", "sessionId"],
});

const KNOWN = histories.pick(...KNOWN_FIELDS);
const STATUS = histories.pick("key", "agentId", "sessionId", "kind", "status", "missing");

export function historyReads(q: Query): HistoryReads {
  const { columns } = histories;
  const { one, many } = reading(q, histories.record);
  const count = (statement: Sql) => numberOf(q, statement);
  return {
    byKey: (key) => one(sql`SELECT ${columns} FROM history_sessions WHERE key = ${key}`),
    bySession: (sessionId) =>
      one(sql`SELECT ${columns} FROM history_sessions WHERE session_id = ${sessionId} ORDER BY no LIMIT 1`),
    ofFamily: (familyKey, { after, limit }) =>
      many(sql`SELECT ${columns} FROM history_sessions
        WHERE family_key = ${familyKey} AND no > ${after} ORDER BY no LIMIT ${limit}`),
    statusesOf: (familyKey) =>
      reading(q, STATUS.record).many(sql`SELECT ${STATUS.columns} FROM history_sessions
        WHERE family_key = ${familyKey} ORDER BY no`),
    known: (node, { after, limit }) =>
      reading(q, knownOf).many(sql`SELECT ${KNOWN.columnsOf("h")},
          s.evidence_state, s.depth, s.parent_id, s.cwd, s.scope
        FROM history_sessions h LEFT JOIN sessions s ON s.id = h.session_id
        WHERE h.no > ${after} AND h.node = ${node} ORDER BY h.no LIMIT ${limit}`),
    refs: (no, { after, limit }) =>
      reading(q, only(number())).many(sql`SELECT ref FROM history_refs
        WHERE no = ${no} AND ref > ${after} ORDER BY ref LIMIT ${limit}`),
    ownerOfRef: ({ node, format, ref }) =>
      reading(q, only(word())).one(sql`SELECT h.key FROM history_sessions h
        WHERE h.node = ${node} AND h.format = ${format} AND h.key = h.family_key AND h.kind = 'imported'
          AND EXISTS (SELECT 1 FROM history_refs r WHERE r.no = h.no AND r.ref = ${ref})
        ORDER BY h.no LIMIT 1`),
    problems: (node, limit) =>
      many(sql`SELECT ${columns} FROM history_sessions
        WHERE node = ${node} AND (problem IS NOT NULL OR bad_count > 0) ORDER BY path, no LIMIT ${limit}`),
    problemCount: (node) =>
      count(sql`SELECT count(*) FROM history_sessions
        WHERE node = ${node} AND (problem IS NOT NULL OR bad_count > 0)`),
    folders: (visible) =>
      reading(q, folderOf).many(sql`SELECT cwd, agent, origin,
          CASE WHEN parent_id IS NULL THEN 0 ELSE 1 END AS below,
          count(*), max(last_activity_at),
          sum(CASE WHEN origin = 'imported'
            THEN CASE WHEN evidence_state IN ('running', 'waiting', 'pending') THEN 1 ELSE 0 END
            ELSE CASE WHEN round_open = 1 AND ended_at IS NULL THEN 1 ELSE 0 END END)
        FROM sessions WHERE ${within(visible)} GROUP BY cwd, agent, origin,
          CASE WHEN parent_id IS NULL THEN 0 ELSE 1 END`),
  };
}

export function historyWrites(q: Query, rootId: string, index: EntryIndex): HistoryWrites {
  return {
    async add(record) {
      const row = await q.get(sql`${added.insert([{ ...record, ...NOT_READ }])}
        ON CONFLICT (key) DO UPDATE SET ${REPLACED}
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

const { no: _no, ...ADDED } = HISTORY;
const added = table<Omit<HistoryRecord, "no">>("history_sessions", ADDED);
const NOT_READ = {
  readStamp: null,
  readBytes: 0,
  missing: null,
  badCount: 0,
  bad: null,
  goneAt: null,
  place: null,
} as const;
const REPLACED = raw(
  ["node", "path", "found", "family_key", "session_id", "root_id", "kind", "stamp", "size_bytes", "problem"]
    .concat(["changed_at", "status", "facts"])
    .map((column) => `${column} = excluded.${column}`)
    .join(", "),
);

interface AppendAt {
  readonly no: number;
  readonly sessionId: string;
  readonly rootId: string;
  /** True: the entries are searchable after the commit. False: only after the indexer has reached them. */
  readonly isLive: boolean;
  readonly index: EntryIndex;
}

/**
 * Appends, in order, the entries whose refs the session does not have yet. Unlike every other write, this one
 * gets bodies that are already JSON and already redacted.
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
  for (const slice of inBatches(entries)) {
    const added = await addRefs(q, no, slice);
    const fresh = slice.filter(({ ref }) => added.delete(ref));
    if (fresh.length === 0) continue;
    const rows = fresh.map(({ ref: _ref, ...entry }, i) => {
      return { ...entry, rootId, sessionId, index: first + appended.length + i, turnId: null };
    });
    if (isLive) await index.insert(q, rows.map(withBody), { agent, scope });
    else await q.run(importedEntries.insert(rows));
    appended.push(...fresh);
  }
  if (appended.length > 0) {
    await q.run(
      sql`UPDATE sessions SET entry_count = entry_count + ${appended.length} WHERE id = ${sessionId}`,
    );
  }
  return { first, appended };
}

/** Entries whose body is already JSON text. */
const importedEntries = table<ImportedRow>(
  "entries",
  { ...ENTRY, body: word() },
  { named: { index: "idx" } },
);
type ImportedRow = Omit<EntryRecord, "body"> & { body: string };

function withBody({ body, ...row }: ImportedRow): EntryRecord {
  return { ...row, body: valueOf(body, ENTRY.body, "the body of an imported entry") };
}

/** Adds the entries' refs to the session. Returns the refs that it did not have before. */
async function addRefs(q: Query, no: number, entries: readonly ImportedEntry[]): Promise<Set<number>> {
  const rows = await q.all({
    text: `INSERT INTO history_refs (no, ref) VALUES ${entries.map(() => "(?, ?)").join(", ")}
      ON CONFLICT DO NOTHING RETURNING ref`,
    params: entries.flatMap(({ ref }) => [no, ref]),
  });
  return new Set(rows.map(only(number())));
}

const folderOf = readerOf(FOLDER_COUNT);
const ofSession = readerOf(OF_SESSION);

function knownOf(row: Row): HistoryKnown {
  return { ...KNOWN.record(row), ...ofSession(row.slice(KNOWN_FIELDS.length)) };
}

/** Reads and writes the import request and its progress, which belong to no tree. */
export function importsOver(at: {
  readonly node: string;
  readonly reader: Query;
  readonly plain: <T>(work: (q: Query) => Promise<T>) => Promise<T>;
  readonly listeners: Pick<Listeners, "asked" | "onAsk">;
  /** Called when there may be entries that are not indexed yet. */
  readonly mayBeUnindexed: () => void;
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
      if (progress.scan.phase !== "reading") at.mayBeUnindexed();
    },
    onAsk: (listener) => listeners.onAsk(listener),
  };
}
