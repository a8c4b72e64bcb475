import { type FeedItem, isPassing } from "../../client/index.ts";
import { type Event, Refusal, type Session } from "../../contract/index.ts";
import { asksOf } from "../answering/asking.ts";
import type { Client } from "../daemon/connection.ts";
import { listOpen, listSessions } from "../sessions.ts";
import { isOpen } from "../show/words.ts";

export interface LiveOptions {
  /** Any session of the one tree to follow. Without it, all open trees are followed. */
  readonly tree?: string;
  readonly all?: boolean;
  readonly signal: AbortSignal;
  readonly onChange: (view: LiveView) => void;
  readonly onEvent?: (event: Event, session: Session | undefined) => void;
}

export interface LiveView {
  readonly sessions: readonly Session[];
  /** When the daemon stopped answering; null while it answers. */
  readonly offlineSince: number | null;
  /** Each session's open question to a person, by session id. */
  readonly asks: ReadonlyMap<string, string>;
}

/**
 * Keeps a view of sessions up to date until the signal is aborted. An event only says which tree has changed;
 * that tree is then read again. After each (re)connection everything is read again, so nothing is missed.
 * Rejects if the daemon refuses.
 */
export async function followSessions(client: Client, options: LiveOptions): Promise<void> {
  const view = new View(client, options);
  const checking = setInterval(() => void view.check(), CHECK_MS);
  try {
    for await (const item of client.events({
      signal: options.signal,
      ...(options.tree ? { tree: options.tree } : {}),
    })) {
      view.take(item);
      if (view.trouble !== null) throw view.trouble;
    }
  } finally {
    clearInterval(checking);
    view.end();
  }
}

class View implements LiveView {
  readonly #client: Client;
  readonly #options: LiveOptions;
  readonly #trees = new Map<string, readonly Session[]>();
  readonly #dirty = new Set<string>();
  #unsaid: Event[] = [];
  #isWhole = false;
  #timer: NodeJS.Timeout | null = null;
  #isReading = false;
  #isEnded = false;
  offlineSince: number | null = null;
  asks: ReadonlyMap<string, string> = new Map();
  trouble: unknown = null;

  constructor(client: Client, options: LiveOptions) {
    this.#client = client;
    this.#options = options;
  }

  get sessions(): readonly Session[] {
    return [...this.#trees.values()].flat();
  }

  take(item: FeedItem): void {
    if (item.type === "open" || item.type === "reset") this.#isWhole = true;
    if (item.type === "event") {
      // An import may create thousands of sessions at once, so this event does not cause their trees to be
      // read.
      if (item.event.type === "session.imported") return;
      this.#dirty.add(item.event.rootId);
      this.#unsaid.push(item.event);
    }
    if (item.type !== "fragment") this.#schedule();
  }

  /** Asks for the daemon's health, because a quiet feed looks like a dead one. */
  async check(): Promise<void> {
    try {
      await this.#client.health({}, { signal: AbortSignal.timeout(SILENT_MS) });
      if (this.offlineSince !== null) this.#isWhole = true;
      if (this.#isWhole) this.#schedule();
    } catch (error) {
      this.#lost(error);
    }
  }

  end(): void {
    this.#isEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#timer !== null || this.#isReading || this.#isEnded) return;
    this.#timer = setTimeout(() => void this.#read(), this.#isWhole ? 0 : READ_MS);
  }

  async #read(): Promise<void> {
    this.#timer = null;
    this.#isReading = true;
    const isWhole = this.#isWhole;
    const roots = [...this.#dirty];
    const events = this.#unsaid;
    this.#isWhole = false;
    this.#dirty.clear();
    this.#unsaid = [];
    try {
      const wanted = isWhole ? await this.#allRoots() : new Set<string>();
      const read = new Map<string, Session>();
      // Also reads trees that have ended, because their last events are printed with the sessions' names.
      for (const root of wanted.union(new Set(roots)))
        for (const session of await this.#readTree(root)) read.set(session.id, session);
      const isAsked = this.sessions.some((session) => session.waiting?.on === "trigger");
      this.asks = isAsked ? await asksOf(this.#client) : new Map();
      this.offlineSince = null;
      this.#say(events, read);
    } catch (error) {
      this.#isWhole = true;
      this.#unsaid = [...events, ...this.#unsaid];
      this.#lost(error);
    } finally {
      this.#isReading = false;
    }
    if (this.#dirty.size > 0) this.#schedule();
  }

  async #allRoots(): Promise<Set<string>> {
    if (this.#options.tree !== undefined) return new Set([this.#options.tree]);
    const sessions = await (this.#options.all ? listSessions : listOpen)(this.#client);
    return new Set([...sessions.map((session) => session.rootId), ...this.#trees.keys()]);
  }

  async #readTree(id: string): Promise<readonly Session[]> {
    const { sessions } = await this.#client.tree({ id });
    const root = sessions[0]?.rootId;
    if (root === undefined) return [];
    const isWanted = this.#options.tree !== undefined || this.#options.all || this.#trees.has(root);
    if (isWanted || sessions.some(isOpen)) this.#trees.set(root, sessions);
    return sessions;
  }

  #say(events: readonly Event[], known: ReadonlyMap<string, Session>): void {
    if (this.#isEnded) return;
    for (const event of events) this.#options.onEvent?.(event, known.get(event.sessionId));
    this.#options.onChange(this);
  }

  #lost(error: unknown): void {
    if (this.#isEnded || this.#options.signal.aborted) return;
    this.offlineSince ??= Date.now();
    this.trouble = error instanceof Refusal && !isPassing(error) ? error : null;
    this.#options.onChange(this);
  }
}

const READ_MS = 80;
const CHECK_MS = 2_000;
const SILENT_MS = 3_000;
