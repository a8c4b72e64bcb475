import { type FileHandle, mkdir, open, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setImmediate as letOthersRun } from "node:timers/promises";
import type { EntryRecord, EventRecord, Reads, SessionRecord, TurnRecord } from "../store/port/store.ts";
import type { EngineDeps, Service } from "./deps.ts";

const WRITE_MS = 500;
const PAGE = 500;
const TAIL_BYTES = 65_536;
/** Entries are read in pages of at most this size, because single entries may be long. */
const READ_BYTES = 1024 * 1024;
/** After a line longer than this, other work may run before the next line. */
const LONG_CHARS = 65_536;
/** Maximum number of trees whose last written event is kept in memory. */
const TREES_MAX = 1_000;

/**
 * Writes one append-only JSONL file per session from the feed. The files are read only by `kinfold restore`,
 * and after an unclean shutdown to check whether the store has lost commits. A stored point says where to
 * continue after a start, and each file's last line says which events it has, so a crash at any moment
 * neither loses nor repeats a line.
 */
export class Rollout implements Service {
  readonly name = "rollout";
  readonly #deps: EngineDeps;
  #xmin = 0;
  /** Sequence number of the last written event, by tree. */
  readonly #written = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;
  #busy: Promise<void> = Promise.resolve();
  #off: () => void = () => undefined;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
  }

  async run(): Promise<void> {
    this.#xmin = await rolloutPoint(this.#deps);
    this.#off = this.#deps.store.onCommit(() => this.#soon());
    this.#soon();
  }

  async stop(): Promise<void> {
    this.#off();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#busy;
    await this.#write();
  }

  /** Schedules a pass. Passes never overlap: two at once would write the same lines twice. */
  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#busy = this.#busy.then(() => this.#write());
    }, WRITE_MS);
  }

  async #write(): Promise<void> {
    try {
      const { feed } = this.#deps.store;
      const { xmin } = await feed.point();
      let failed = 0;
      for (const tree of await feed.treesSince(this.#xmin)) {
        if (this.#written.get(tree.rootId) === tree.seq) continue;
        if (!(await this.#tryTree(tree.rootId))) failed += 1;
      }
      // After a failure the point is not moved, so the next pass finds the failed trees again.
      if (failed > 0 || xmin === this.#xmin) return;
      await this.#keepPoint(xmin);
      this.#xmin = xmin;
      // Forgetting the trees is safe, because all events before the point are written. When a forgotten tree
      // gets new events, they are compared with its files once.
      if (this.#written.size > TREES_MAX) this.#written.clear();
    } catch (error) {
      this.#deps.log.error({ err: error }, "writing rollouts failed; retrying at the next commit");
    }
  }

  /** Writes one tree. If that fails, logs the error and returns false, so that other trees are written. */
  async #tryTree(rootId: string): Promise<boolean> {
    try {
      await this.#writeTree(rootId);
      return true;
    } catch (error) {
      this.#deps.log.error(
        { err: error, rootId },
        "writing the rollouts of a tree failed; retrying at the next commit",
      );
      return false;
    }
  }

  async #writeTree(rootId: string): Promise<void> {
    const { feed } = this.#deps.store;
    const known = this.#written.get(rootId);
    const first = known === undefined ? await feed.firstSince(rootId, this.#xmin) : known + 1;
    if (first === null) return;
    // The tree leaves the map until its last page is written. If the pass fails before that, the next pass
    // compares the tree with its files.
    this.#written.delete(rootId);
    for (let after = first - 1; ;) {
      const page = await feed.ofTree(rootId, after, PAGE);
      for (const [sessionId, events] of Map.groupBy(page, (event) => event.sessionId)) {
        await this.#append(sessionId, events, known === undefined);
      }
      after = page.at(-1)?.seq ?? after;
      if (page.length < PAGE) {
        this.#written.set(rootId, after);
        return;
      }
    }
  }

  /** Appends a session's lines in one write. With `compare`, skips the lines that the file already has. */
  async #append(sessionId: string, events: readonly EventRecord[], compare: boolean): Promise<void> {
    const { store, rolloutPath } = this.#deps;
    const session = await store.read.sessions.byId(sessionId);
    // An imported session needs no rollout, because the agent's own file already has it.
    if (session === null || session.origin === "imported") return;
    const lines = await linesOf(store.read, session, events);
    const handle = await openFile(rolloutPath(session));
    try {
      const has = compare ? await lastSeq(handle) : 0;
      const missing = lines.filter((line) => line.seq > has);
      await handle.appendFile(missing.map((line) => line.text).join(""));
    } finally {
      await handle.close();
    }
  }

  async #keepPoint(xmin: number): Promise<void> {
    await mkdir(this.#deps.rolloutFolder, { recursive: true, mode: 0o700 });
    await writeFile(pointFile(this.#deps), `${this.#deps.store.epoch}.${xmin}\n`, { mode: 0o600 });
  }
}

/** Returns the transaction number below which all events are in the rollouts; 0 if it is unknown. */
export async function rolloutPoint(deps: Pick<EngineDeps, "rolloutFolder" | "store">): Promise<number> {
  // If the point cannot be read, all events are compared with the files again, so no line is written twice.
  const text = await readFile(pointFile(deps), "utf8").catch(() => "");
  const [epoch, xmin] = text.trim().split(".");
  return epoch === deps.store.epoch ? Number(xmin) || 0 : 0;
}

function pointFile({ rolloutFolder }: Pick<EngineDeps, "rolloutFolder">): string {
  return path.join(rolloutFolder, ".point");
}

async function openFile(file: string): Promise<FileHandle> {
  try {
    return await open(file, "a+", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    return open(file, "a+", 0o600);
  }
}

interface Line {
  readonly seq: number;
  readonly text: string;
}

async function linesOf(
  read: Reads,
  session: SessionRecord,
  events: readonly EventRecord[],
): Promise<readonly Line[]> {
  const entries = await entriesOf(read, session, events);
  const lines: Line[] = [];
  for (const event of events) {
    const line = await lineOf(read, session, { event, entries });
    if (line === null) continue;
    const { seq } = event;
    const text = `${JSON.stringify({ timestamp: iso(event.at), seq, ...line })}\n`;
    lines.push({ seq, text });
    if (text.length > LONG_CHARS) await letOthersRun();
  }
  return lines;
}

async function entriesOf(
  read: Reads,
  session: SessionRecord,
  events: readonly EventRecord[],
): Promise<ReadonlyMap<number, EntryRecord>> {
  const indices = events
    .filter((event) => event.type === "entry.appended")
    .map((event) => Number(event.data["index"]));
  const [first] = indices;
  if (first === undefined) return new Map();
  const end = indices.at(-1)! + 1;
  const entries = new Map<number, EntryRecord>();
  for (let after = first - 1; after < end - 1;) {
    const page = await read.entries.page(session.id, {
      after,
      before: end,
      limit: PAGE,
      bytesMax: READ_BYTES,
    });
    for (const entry of page) entries.set(entry.index, entry);
    after = page.at(-1)?.index ?? end;
    await letOthersRun();
  }
  return entries;
}

async function lineOf(
  read: Reads,
  session: SessionRecord,
  { event, entries }: { event: EventRecord; entries: ReadonlyMap<number, EntryRecord> },
): Promise<{ type: string; payload: unknown } | null> {
  switch (event.type) {
    case "session.created":
      return { type: "session_meta", payload: metaOf(session) };
    case "turn.started": {
      const turn = await read.turns.byId(String(event.data["turnId"]));
      return turn === null ? null : { type: "turn_context", payload: contextOf(session, turn) };
    }
    case "entry.appended": {
      const entry = entries.get(Number(event.data["index"]));
      if (entry === undefined) return null;
      const { index, kind, author, body, turnId } = entry;
      return { type: "entry", payload: { index, turn_id: turnId, author, kind, ...body } };
    }
    default:
      return { type: "event", payload: { event: event.type, text: event.text, ...event.data } };
  }
}

function contextOf(session: SessionRecord, turn: TurnRecord): Record<string, unknown> {
  const { id: turn_id, index, round, kind } = turn;
  const { cwd, model } = session;
  const { permission } = session.effective;
  return { turn_id, index, round, kind, started_at: iso(turn.startedAt), cwd, model, permission };
}

function metaOf(session: SessionRecord): Record<string, unknown> {
  const { id, source, name, agent, model, profile, scope, cwd, effective } = session;
  const timestamp = iso(session.createdAt);
  const lineage = { parent_id: session.parentId, root_id: session.rootId };
  return { id, timestamp, source, ...lineage, name, agent, model, profile, scope, cwd, effective };
}

/** Returns the sequence number of the last complete line. Adds a line break to an incomplete last line. */
async function lastSeq(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat();
  if (size === 0) return 0;
  const length = Math.min(size, TAIL_BYTES);
  const { buffer } = await handle.read({ buffer: Buffer.alloc(length), position: size - length });
  const text = buffer.toString("utf8");
  const lines = text.split("\n");
  const torn = lines.pop() ?? "";
  if (torn !== "") await handle.appendFile("\n");
  for (const line of lines.toReversed()) {
    const match = /"seq":(\d+)/.exec(line.slice(0, 200));
    if (match !== null) return Number(match[1]);
  }
  // The last line is longer than the tail, so the whole file is read. This is rare, because files are
  // compared only when the tree's last written event is not in memory.
  const all = (await handle.readFile("utf8")).matchAll(/^\{"timestamp":"[^"]*","seq":(\d+)/gm);
  return [...all].reduce((max, match) => Math.max(max, Number(match[1])), 0);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
