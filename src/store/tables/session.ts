import { redact } from "../../secrets/redact.ts";
import { redactBriefly } from "../../secrets/redact-long.ts";
import type { SessionFilter, SessionReads, SessionWrites, Visible } from "../port/store.ts";
import { type Counts, COUNTS, SESSION, type SessionRecord } from "../port/record.ts";
import { maybe, number, numberOf, only, reading, readerOf, valueOf, valuesOf, word } from "../column.ts";
import { and, list, raw, sql, type Query, type Sql } from "../sql.ts";
import { QUEUED } from "./message.ts";
import { table } from "../table.ts";

export const sessions = table<SessionRecord>("sessions", SESSION, {
  fixed: ["id", "rootId", "createdAt", "entryCount", "positionCount", "turnCount"],
  derived: [
    { column: "callback_on", from: "callback", value: (record) => (record.callback?.enabled ? 1 : 0) },
    { column: "evidence_state", from: "evidence", value: (record) => record.evidence?.state ?? "" },
    { column: "minutes", from: "effective", value: (record) => record.effective?.limits["minutes"] ?? null },
    { column: "parked_on", from: "parked", value: (record) => record.parked?.on ?? null },
    { column: "parked_until", from: "parked", value: (record) => record.parked?.until ?? null },
  ],
});

export function sessionReads(q: Query): SessionReads {
  const { one, many } = reading(q, sessions.record);
  const count = (statement: Sql) => numberOf(q, statement);
  const { columns } = sessions;
  return {
    byId: (id) => one(sql`SELECT ${columns} FROM sessions WHERE id = ${id}`),
    byRef: (ref, visible) => many(byRef(ref, visible)),
    byKey: (caller, key) =>
      one(sql`SELECT ${columns} FROM sessions WHERE key_caller = ${caller} AND key = ${key}`),
    byAgentSession: (agent, agentSessionId) =>
      many(sql`SELECT ${columns} FROM sessions
        WHERE agent_session_id = ${agentSessionId} AND agent = coalesce(${agent}, agent) ORDER BY created_at, id`),
    openByName: (parentId, name) =>
      one(sql`SELECT ${columns} FROM sessions
        WHERE parent_id = ${parentId} AND name = ${redact(name)} AND round_open = 1 AND ended_at IS NULL
        ORDER BY created_at DESC, id DESC LIMIT 1`),
    replyLost: (parentId, keyHash, since) =>
      one(sql`SELECT ${columns} FROM sessions
        WHERE parent_id = ${parentId} AND key_hash = ${keyHash} AND reply_lost_at >= ${since}
        ORDER BY reply_lost_at DESC, id DESC LIMIT 1`),
    list: (filter) => many(listed(filter)),
    ready: (node, limit) =>
      many(sql`SELECT ${sessions.columnsOf("s")} FROM sessions s JOIN ${FIRST_QUEUED} q ON q.session_id = s.id
        WHERE ${isReady(node)} ORDER BY q.since, s.id LIMIT ${limit}`),
    readyBefore: (node, sessionId) =>
      count(sql`SELECT count(*) FROM sessions s JOIN ${FIRST_QUEUED} q ON q.session_id = s.id
        JOIN (SELECT min(admitted_at) AS since FROM messages
          WHERE session_id = ${sessionId} AND ${QUEUED}) own
        ON q.since < own.since OR (q.since = own.since AND s.id < ${sessionId})
        WHERE ${isReady(node)}`),
    withOpenRound: (node) =>
      many(sql`SELECT ${columns} FROM sessions
        WHERE node = ${node} AND round_open = 1 AND ended_at IS NULL AND origin = 'managed'
        ORDER BY ${BY_CREATION}`),
    timedTrees: (node) =>
      reading(q, only(word())).many(sql`SELECT DISTINCT root_id FROM sessions
        WHERE node = ${node} AND round_open = 1 AND ended_at IS NULL AND minutes IS NOT NULL`),
    inBackground: (node) =>
      many(sql`SELECT ${columns} FROM sessions
        WHERE node = ${node} AND round_open = 1 AND ended_at IS NULL AND background_until IS NOT NULL
        ORDER BY ${BY_CREATION}`),
    parkedUntil: (node, at) =>
      many(sql`SELECT ${columns} FROM sessions
        WHERE parked_on IS NOT NULL AND parked_until <= ${at} AND node = ${node} AND ended_at IS NULL
          AND origin = 'managed' ORDER BY parked_until, id`),
    parkedIn: (rootId) =>
      many(sql`SELECT ${columns} FROM sessions
        WHERE parked_on IS NOT NULL AND root_id = ${rootId} AND ended_at IS NULL ORDER BY updated_at, id`),
    counts: (visible) => counts(q, visible),
    usageSince: (at, visible) => usageSince(q, at, visible),
    ...familyReads(q),
  };
}

function familyReads(q: Query) {
  const { many } = reading(q, sessions.record);
  const names = reading(q, NAMES.record).many;
  const count = (statement: Sql) => numberOf(q, statement);
  const { columns } = sessions;
  return {
    children: (parentId) =>
      many(sql`SELECT ${columns} FROM sessions WHERE parent_id = ${parentId} ORDER BY created_at, id`),
    awaitedChildren: (parentId) =>
      names(sql`SELECT ${NAMES.columns} FROM sessions
        WHERE parent_id = ${parentId} AND round_open = 1 AND ended_at IS NULL
          AND origin = 'managed' AND detached_at IS NULL AND callback_on = 1
        ORDER BY created_at, id`),
    openChildren: (parentId) =>
      names(sql`SELECT ${NAMES.columns} FROM sessions
        WHERE parent_id = ${parentId} AND round_open = 1 AND ended_at IS NULL
          AND origin = 'managed' AND detached_at IS NULL
        ORDER BY created_at, id`),
    tree: (rootId) =>
      many(sql`SELECT ${columns} FROM sessions WHERE root_id = ${rootId} ORDER BY depth, created_at, id`),
    treeUsage: (rootId) =>
      reading(q, USAGES.record).many(sql`SELECT ${USAGES.columns} FROM sessions
        WHERE root_id = ${rootId} ORDER BY depth, created_at, id`),
    openCount: (rootId) =>
      count(sql`SELECT count(*) FROM sessions
        WHERE root_id = ${rootId} AND round_open = 1 AND ended_at IS NULL AND origin = 'managed'`),
    spawnedSince: (rootId, at) =>
      count(sql`SELECT count(*) FROM sessions
        WHERE root_id = ${rootId} AND created_at >= ${at} AND parent_id IS NOT NULL`),
  } satisfies Partial<SessionReads>;
}

/** Redacts a session's spawn settings, except the steps of its chain that have yet to begin. */
function shownConfig(config: SessionRecord["spawnConfig"]): SessionRecord["spawnConfig"] {
  const { chain, ...rest } = config;
  const shown = redactBriefly(rest);
  return chain === undefined ? shown : { ...shown, chain };
}

export function sessionWrites(q: Query, rootId: string): SessionWrites {
  /** When a session ends, also redacts the remaining steps of its chain: no agent will need their text. */
  async function shownPatch(id: string, patch: Partial<SessionRecord>): Promise<Partial<SessionRecord>> {
    const { spawnConfig: given, endedAt } = patch;
    if (typeof endedAt !== "number") return given ? { ...patch, spawnConfig: shownConfig(given) } : patch;
    const row = given ? null : await q.get(sql`SELECT spawn_config FROM sessions WHERE id = ${id}`);
    const kept = given ?? (row === null ? {} : valueOf(row[0], SESSION.spawnConfig, "sessions.spawnConfig"));
    return { ...patch, spawnConfig: redactBriefly(kept) };
  }

  return {
    async add(record) {
      if (record.rootId !== rootId) {
        throw new Error(
          `session ${record.id} belongs to tree ${record.rootId}, but the write holds the lock of ${rootId}`,
        );
      }
      await q.run(sessions.insert([{ ...record, spawnConfig: shownConfig(record.spawnConfig) }]));
    },
    async patch(id, patch) {
      const set = sessions.set(await shownPatch(id, patch));
      if (set === null) return;
      const changed = await q.run(sql`UPDATE sessions SET ${set} WHERE id = ${id} AND root_id = ${rootId}`);
      if (changed !== 1) throw new Error(`there is no session ${id} in tree ${rootId}`);
    },
  };
}

const NOTHING = raw("");
const NAMES = sessions.pick("id", "shortId", "name");
const USAGES = sessions.pick("id", "parentId", "usage");

/** `+ 0` avoids an index on `created_at`: SQLite would walk all sessions in it to find the few open ones. */
const BY_CREATION = raw("created_at + 0, id");

/** Per session, when its longest-waiting message was admitted. */
const FIRST_QUEUED = raw(
  `(SELECT session_id, min(admitted_at) AS since FROM messages WHERE ${QUEUED.text} GROUP BY session_id)`,
);

function isReady(node: string): Sql {
  return sql`s.node = ${node} AND s.origin = 'managed' AND s.ended_at IS NULL AND s.held IS NULL
    AND s.parked_on IS NULL
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.status = 'running')`;
}

/** Ids are lower-case hexadecimal and dashes, so `g` sorts after every continuation of a prefix. */
function byRef(ref: string, visible: Visible): Sql {
  const prefix = ref.toLowerCase();
  const asId = /^[0-9a-f-]{8,36}$/.test(prefix)
    ? sql` OR (id >= ${prefix} AND id < ${`${prefix}g`})`
    : NOTHING;
  const asShortId = /^[0-9a-f]{4,8}$/.test(prefix)
    ? sql` OR (short_id >= ${prefix} AND short_id < ${`${prefix}g`})`
    : NOTHING;
  return sql`SELECT ${sessions.columns} FROM sessions
    WHERE (name = ${redact(ref)}${asId}${asShortId}) AND ${within(visible)}
    ORDER BY round_open DESC, created_at DESC, id DESC LIMIT 10`;
}

function listed(filter: SessionFilter): Sql {
  const conditions: Sql[] = [within(filter.visible)];
  if (filter.parentId !== undefined) conditions.push(sql`parent_id = ${filter.parentId}`);
  if (filter.rootId !== undefined) conditions.push(sql`root_id = ${filter.rootId}`);
  if (filter.origin !== undefined) conditions.push(sql`origin = ${filter.origin}`);
  if (filter.agent !== undefined) conditions.push(sql`agent = ${filter.agent}`);
  if (filter.unseen !== undefined) conditions.push(sql`seen = ${filter.unseen ? 0 : 1}`);
  if (filter.atWork) conditions.push(AT_WORK);
  if (filter.ended !== undefined) {
    conditions.push(raw(filter.ended ? "ended_at IS NOT NULL" : "ended_at IS NULL"));
  }
  if (filter.before !== undefined) {
    const { createdAt, id } = filter.before;
    conditions.push(sql`(created_at, id) < (${createdAt}, ${id})`);
  }
  return sql`SELECT ${sessions.columns} FROM sessions WHERE ${and(conditions)}
    ORDER BY created_at DESC, id DESC LIMIT ${filter.limit}`;
}

/** Two small indexes serve this: one for sessions with an open round, one for imported sessions at work. */
const AT_WORK = raw(`(round_open = 1 AND ended_at IS NULL
  OR origin = 'imported' AND evidence_state IN ('running', 'waiting', 'pending'))`);

/** Limits a query to the reader's scopes; without any scope it matches nothing. */
export function within(visible: Visible): Sql {
  if (visible === "all") return raw("1 = 1");
  return visible.length === 0 ? raw("1 = 0") : sql`scope IN ${list(visible)}`;
}

async function counts(q: Query, visible: Visible): Promise<Counts> {
  const seen = within(visible);
  const row = await q.get(sql`SELECT
    (SELECT count(DISTINCT session_id) FROM turns WHERE status = 'running'${ofVisible(visible)}),
    (SELECT count(*) FROM sessions s WHERE ${seen} AND round_open = 1 AND ended_at IS NULL AND NOT EXISTS
      (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.status = 'running')),
    (SELECT count(*) FROM sessions WHERE ${seen} AND round_open = 1 AND ended_at IS NULL),
    (SELECT count(*) FROM sessions WHERE ${seen} AND seen = 0 AND round_open = 0 AND round > 0),
    (SELECT count(*) FROM sessions WHERE ${seen}),
    (SELECT count(DISTINCT root_id) FROM sessions WHERE ${seen} AND round_open = 1 AND ended_at IS NULL)`);
  return countsIn(row ?? [0, 0, 0, 0, 0, 0]);
}

const countsIn = readerOf(COUNTS);

async function usageSince(
  q: Query,
  at: number,
  visible: Visible,
): Promise<{ tokens: number; usd: number | null }> {
  const row = await q.get(sql`SELECT coalesce(sum(tokens), 0), sum(usd) FROM turns
    WHERE settled_at >= ${at}${ofVisible(visible)}`);
  const [tokens, usd] = valuesOf(row ?? [0, null], number(), maybe(number()));
  return { tokens, usd };
}

/** Limits a query to turns of visible sessions; adds nothing if everything is visible. */
function ofVisible(visible: Visible): Sql {
  if (visible === "all") return sql``;
  return sql` AND session_id IN (SELECT id FROM sessions WHERE ${within(visible)})`;
}
