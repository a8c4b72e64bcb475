import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { readSmall } from "../../../lines/byte-file.ts";
import { openDatabase, type Table } from "../../../sqlite/database.ts";
import { asText } from "../../../lines/value.ts";
import { parsedObject } from "../../../lines/parse-json.ts";
import { shortText } from "../../../lines/text.ts";

/** What Codex's indexes say about a session. */
export interface IndexedSession {
  /** The name that a person gave the session. */
  readonly title: string | null;
  readonly isSubagent: boolean;
  readonly parentId: string | null;
  readonly rootId: string | null;
  /** The session's parent closed it, so the session is over. How it ended is not recorded. */
  readonly closed: boolean;
}

export type Indexed = (id: string) => IndexedSession;

/**
 * Reads names and parents from Codex's indexes. They only add what a session's file lacks, so a missing or
 * damaged index does no harm.
 */
export async function readIndexes(root: string): Promise<Indexed> {
  const names = await readNames(root);
  const { threads, edges } = await readStates(root);
  return (id) => {
    const edge = edges.get(id) ?? null;
    const thread = threads.get(id) ?? null;
    return {
      title: thread?.name ?? names.get(id) ?? null,
      isSubagent: edge !== null || thread?.source === "subagent",
      parentId: edge?.parentId ?? null,
      // Older rows have no source. For those, only the session's file shows whether the session is a root.
      rootId: edge === null ? (thread?.source === "user" ? id : null) : topOf(id, edges),
      closed: edge?.closed ?? false,
    };
  };
}

interface Thread {
  readonly name: string | null;
  readonly source: string | null;
}

interface Edge {
  readonly parentId: string;
  readonly closed: boolean;
}

interface States {
  readonly threads: ReadonlyMap<string, Thread>;
  readonly edges: ReadonlyMap<string, Edge>;
}

const NAMES_BYTES_MAX = 64 * 1024 * 1024;

/** Older versions append a line for every new name, so the last line about a session counts. */
async function readNames(root: string): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const text = await readSmall(join(root, "session_index.jsonl"), NAMES_BYTES_MAX);
  for (const line of (text ?? "").split("\n")) {
    const record = parsedObject(line);
    const id = asText(record?.["id"]);
    const name = shortText(record?.["thread_name"]);
    if (id !== null && name !== null) names.set(id.toLowerCase(), name);
  }
  return names;
}

const NOTHING: States = { threads: new Map(), edges: new Map() };
/** The most attempts to read the database. An attempt fails if the agent writes to it meanwhile. */
const TRIES_MAX = 3;

async function readStates(root: string): Promise<States> {
  // A root that cannot be listed has no index; its files are read without one.
  const names = await readdir(root).catch((): string[] => []);
  const versions = names.flatMap((name) => /^state_(\d{1,6})\.sqlite$/u.exec(name)?.[1] ?? []).map(Number);
  if (versions.length === 0) return NOTHING;
  const path = join(root, `state_${Math.max(...versions)}.sqlite`);
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const states = statesIn(path);
    if (states !== null) return states;
  }
  return NOTHING;
}

/** Returns null when the database changed while it was read. */
function statesIn(path: string): States | null {
  try {
    const database = openDatabase(path);
    try {
      const threads = threadsIn(database.table("threads"));
      const edges = edgesIn(database.table("thread_spawn_edges"));
      return database.isStill() ? { threads, edges } : null;
    } finally {
      database.close();
    }
  } catch {
    return NOTHING;
  }
}

function threadsIn(table: Table | null): Map<string, Thread> {
  const threads = new Map<string, Thread>();
  for (const row of table?.rows() ?? []) {
    const id = row.text("id")?.toLowerCase();
    if (id) threads.set(id, { name: shortText(row.text("name")), source: row.text("thread_source") });
  }
  return threads;
}

function edgesIn(table: Table | null): Map<string, Edge> {
  const edges = new Map<string, Edge>();
  for (const row of table?.rows() ?? []) {
    const id = row.text("child_thread_id")?.toLowerCase();
    const parentId = row.text("parent_thread_id")?.toLowerCase();
    if (id && parentId) edges.set(id, { parentId, closed: row.text("status") === "closed" });
  }
  return edges;
}

/** Returns null when the parents form a cycle. */
function topOf(id: string, edges: ReadonlyMap<string, Edge>): string | null {
  const seen = new Set<string>();
  let at = id;
  for (let edge = edges.get(at); edge !== undefined; edge = edges.get(at)) {
    if (seen.has(at)) return null;
    seen.add(at);
    at = edge.parentId;
  }
  return at;
}
