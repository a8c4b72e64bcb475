import { type FileHandle, mkdir, open, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { EventRecord, SessionRecord } from "../store/port.ts";
import type { EngineDeps, Service } from "./deps.ts";

const WRITE_MS = 200;
const PAGE = 500;
const TAIL_BYTES = 65_536;

/**
 * One append-only JSONL per session, written from the feed and never read back by us. A point
 * kept beside them says from where to look after a start; each file's last line says what it
 * has, so nothing is missing and nothing stands twice, wherever the daemon died.
 */
export class Rollout implements Service {
  readonly name = "rollout";
  readonly #deps: EngineDeps;
  #xmin = 0;
  /** The last event written, by tree. */
  readonly #written = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;
  #busy: Promise<void> = Promise.resolve();
  #off: () => void = () => undefined;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
  }

  async run(): Promise<void> {
    this.#xmin = await this.#readPoint();
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

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#busy = this.#write();
    }, WRITE_MS);
  }

  async #write(): Promise<void> {
    try {
      const { feed } = this.#deps.store;
      const { xmin } = await feed.point();
      for (const tree of await feed.treesSince(this.#xmin)) {
        if (this.#written.get(tree.rootId) !== tree.seq) await this.#writeTree(tree.rootId);
      }
      if (xmin !== this.#xmin) await this.#keepPoint(xmin);
      this.#xmin = xmin;
    } catch (error) {
      this.#deps.log.error({ err: error }, "rollouts could not be written; the next commit tries again");
    }
  }

  async #writeTree(rootId: string): Promise<void> {
    const { feed } = this.#deps.store;
    const known = this.#written.get(rootId);
    const first = known === undefined ? await feed.firstSince(rootId, this.#xmin) : known + 1;
    if (first === null) return;
    const files = new Files(this.#deps, known === undefined);
    try {
      for (let after = first - 1; ;) {
        const page = await feed.ofTree(rootId, after, PAGE);
        for (const event of page) await files.add(event);
        after = page.at(-1)?.seq ?? after;
        this.#written.set(rootId, after);
        if (page.length < PAGE) return;
      }
    } finally {
      await files.close();
    }
  }

  async #readPoint(): Promise<number> {
    const text = await readFile(this.#pointFile(), "utf8").catch(() => "");
    const [epoch, xmin] = text.trim().split(".");
    return epoch === this.#deps.store.epoch ? Number(xmin) || 0 : 0;
  }

  async #keepPoint(xmin: number): Promise<void> {
    await mkdir(this.#deps.rolloutFolder, { recursive: true, mode: 0o700 });
    await writeFile(this.#pointFile(), `${this.#deps.store.epoch}.${xmin}\n`, { mode: 0o600 });
  }

  #pointFile(): string {
    return path.join(this.#deps.rolloutFolder, ".point");
  }
}

interface OpenFile {
  readonly handle: FileHandle;
  /** Lines up to this event are there already. */
  readonly has: number;
}

/** The files of one tree while it is being written. */
class Files {
  readonly #deps: EngineDeps;
  readonly #compare: boolean;
  readonly #open = new Map<string, OpenFile>();

  constructor(deps: EngineDeps, compare: boolean) {
    this.#deps = deps;
    this.#compare = compare;
  }

  async add(event: EventRecord): Promise<void> {
    const line = await this.#lineOf(event);
    if (line === null) return;
    const file = await this.#file(event.sessionId);
    if (file === null || event.seq <= file.has) return;
    await file.handle.appendFile(
      `${JSON.stringify({ timestamp: iso(event.at), seq: event.seq, ...line })}\n`,
    );
  }

  async close(): Promise<void> {
    for (const { handle } of this.#open.values()) await handle.close();
  }

  async #file(sessionId: string): Promise<OpenFile | null> {
    const known = this.#open.get(sessionId);
    if (known !== undefined) return known;
    const session = await this.#deps.store.read.sessions.byId(sessionId);
    if (session === null) return null;
    const file = this.#deps.rolloutPath(session);
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    const handle = await open(file, "a+", 0o600);
    const opened = { handle, has: this.#compare ? await lastSeq(handle) : 0 };
    this.#open.set(sessionId, opened);
    return opened;
  }

  async #lineOf(event: EventRecord): Promise<{ type: string; payload: unknown } | null> {
    const { read } = this.#deps.store;
    switch (event.type) {
      case "session.created": {
        const session = await read.sessions.byId(event.sessionId);
        return session === null ? null : { type: "session_meta", payload: metaOf(session) };
      }
      case "turn.started": {
        const turn = await read.turns.byId(String(event.data["turnId"]));
        const session = await read.sessions.byId(event.sessionId);
        if (turn === null || session === null) return null;
        const { id, index, round, kind, startedAt } = turn;
        const { cwd, model, effective } = session;
        const payload = {
          turn_id: id,
          index,
          round,
          kind,
          started_at: iso(startedAt),
          cwd,
          model,
          permission: effective.permission,
        };
        return { type: "turn_context", payload };
      }
      case "entry.appended": {
        const index = Number(event.data["index"]);
        const [entry] = await read.entries.page(event.sessionId, { after: index - 1, limit: 1 });
        if (entry === undefined || entry.index !== index) return null;
        const { kind, author, body, turnId } = entry;
        return { type: "entry", payload: { index, turn_id: turnId, author, kind, ...body } };
      }
      default:
        return { type: "event", payload: { event: event.type, text: event.text, ...event.data } };
    }
  }
}

function metaOf(session: SessionRecord): Record<string, unknown> {
  return {
    id: session.id,
    timestamp: iso(session.createdAt),
    source: session.source,
    parent_id: session.parentId,
    root_id: session.rootId,
    name: session.name,
    agent: session.agent,
    model: session.model,
    cwd: session.cwd,
    effective: session.effective,
  };
}

/** A last line that was torn by a crash is ended, so that the next one stands alone. */
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
  // One line longer than the tail: the file is read whole, which happens once after a crash.
  const all = (await handle.readFile("utf8")).matchAll(/^\{"timestamp":"[^"]*","seq":(\d+)/gm);
  return [...all].reduce((max, match) => Math.max(max, Number(match[1])), 0);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
