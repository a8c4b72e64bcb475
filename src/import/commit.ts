import type { SessionRecord, Store, Tx } from "../store/port/store.ts";
import type { EntryBatch, MemberChange, NewMember, OwnSession, StoreSide } from "./thread/protocol.ts";

/** A larger batch is announced as one range, because nobody follows a thousand entries one by one. */
const SINGLY_MAX = 200;

/** The operations of the store that the import thread may call. Every write is short and names its tree. */
export function storeSide(store: Store, now: () => number): StoreSide {
  const { read, node } = store;
  const trees = new Trees(store);
  return {
    known: (page) => read.history.known(node, page),
    family: ({ familyKey, ...page }) => read.history.ofFamily(familyKey, page),
    ownerOfRef: (at) => read.history.ownerOfRef(at),
    refs: ({ no, ...page }) => read.history.refs(no, page),
    ours: (asked) => ours(store, asked),
    add: (members) => add(store, members, now()),
    append: (batch) => trees.write(batch.rootId, (tx) => append(tx, batch, now())),
    change: (changes) => change(trees, changes, now()),
    resume: async (rootIds) => trees.resume(rootIds),
    progress: (progress) => store.imports.publish(progress),
  };
}

/**
 * Writes are sent without waiting for earlier ones. After a failed write, a tree therefore rejects all writes
 * until `resume`; otherwise a read position could be stored without the entries before it.
 */
class Trees {
  readonly #store: Store;
  readonly #failed = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  async write(rootId: string, work: (tx: Tx) => Promise<void>): Promise<void> {
    try {
      await this.#store.write(rootId, async (tx) => {
        if (this.#failed.has(rootId)) throw new Error("an earlier write of this tree failed");
        await work(tx);
      });
    } catch (error) {
      this.#failed.add(rootId);
      throw error;
    }
  }

  resume(rootIds: readonly string[]): void {
    for (const rootId of rootIds) this.#failed.delete(rootId);
  }
}

async function ours(
  store: Store,
  { agent, ids }: { agent: string; ids: readonly string[] },
): Promise<OwnSession[]> {
  const found: OwnSession[] = [];
  for (const agentSessionId of ids) {
    const sessions = await store.read.sessions.byAgentSession(agent, agentSessionId);
    const own = sessions.find(({ origin }) => origin !== "imported");
    if (own === undefined) continue;
    const { id: sessionId, rootId, depth, scope } = own;
    found.push({ agentSessionId, sessionId, rootId, depth, scope });
  }
  return found;
}

async function add(store: Store, members: readonly NewMember[], now: number): Promise<number[]> {
  const numbers = new Map<string, number>();
  for (const [rootId, own] of Map.groupBy(members, ({ record }) => record.rootId)) {
    await store.write(rootId, async (tx) => {
      for (const { record, session } of own) {
        numbers.set(record.key, await tx.history.add(record));
        if (session !== null) await addSession(tx, session, now);
      }
    });
  }
  return members.map(({ record }) => numbers.get(record.key) as number);
}

/** The session may already exist: from before a crash, or because another machine has the same file. */
async function addSession(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  if ((await tx.sessions.byId(session.id)) !== null) return;
  await tx.sessions.add(session);
  const { id, parentId, agent, model, depth, origin, evidence } = session;
  const data = { name: null, parentId, agent, model, depth, origin, state: evidence.state };
  tx.append({ sessionId: id, type: "session.created", text: null, data, at: now });
}

async function append(tx: Tx, batch: EntryBatch, now: number): Promise<void> {
  const { no, sessionId, entries, isLive, lineage } = batch;
  const { first, appended } = await tx.history.append({ no, sessionId, isLive }, entries);
  if (appended.length === 0) return;
  if (!isLive || appended.length > SINGLY_MAX) {
    const data = { from: first, to: first + appended.length - 1, ...lineage };
    tx.append({ sessionId, type: "session.imported", text: null, data, at: now });
    return;
  }
  for (const [i, { kind, author, isSubagent, at }] of appended.entries()) {
    const data = { index: first + i, kind, author, turnId: null, isSubagent, ...lineage };
    tx.append({ sessionId, type: "entry.appended", text: null, data, at });
  }
}

async function change(trees: Trees, changes: readonly MemberChange[], now: number): Promise<void> {
  for (const [rootId, own] of Map.groupBy(changes, (each) => each.rootId)) {
    await trees.write(rootId, async (tx) => {
      for (const { no, record, session } of own) {
        await tx.history.patch(no, record);
        if (session !== null) await changeSession(tx, session, now);
      }
    });
  }
}

/** Only visible changes become an event: a state, its reason, a title, a position in the tree. */
async function changeSession(
  tx: Tx,
  { id, patch }: NonNullable<MemberChange["session"]>,
  now: number,
): Promise<void> {
  const before = await tx.sessions.byId(id);
  if (before === null) return;
  await tx.sessions.patch(id, patch);
  const fields = ["evidence", "parentId", "title", "outcome"] as const;
  const changed = fields.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(patch[field]));
  if (changed.length === 0) return;
  const data = Object.fromEntries(changed.map((field) => [field, patch[field]]));
  tx.append({ sessionId: id, type: "session.updated", text: null, data, at: now });
}
