import pg from "pg";
import type { Log } from "../../log.ts";
import type { Commit } from "../port/store.ts";
import { clientOptions, type Address } from "./connection.ts";

/** At most twenty notifications a second. */
const SPACING_MS = 50;
/** PostgreSQL allows 8,000 bytes. Instead of a longer list, an empty one is sent: "look at everything". */
const PAYLOAD_MAX = 7_000;
const RECONNECT_MS = 1_000;
const RECONNECT_MAX_MS = 30_000;

type Note = Commit & { readonly boot: string };

interface WakeOptions {
  readonly address: Address;
  readonly pool: pg.Pool;
  readonly boot: string;
  readonly log: Log;
  readonly heard: (commit: Commit) => void;
}

/** Notifies other nodes of commits and listens for theirs. Polling makes up for a lost notification. */
export class Wakes {
  readonly #at: WakeOptions;
  readonly #channel: string;
  readonly #rootIds = new Set<string>();
  readonly #wakes = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #sentAt = Number.NEGATIVE_INFINITY;
  #listener: pg.Client | null = null;
  #retry: NodeJS.Timeout | null = null;
  #retryMs = RECONNECT_MS;
  #closed = false;

  constructor(at: WakeOptions) {
    this.#at = at;
    this.#channel = `kinfold_${at.address.schema}`.slice(0, 63);
  }

  send(commit: Commit): void {
    for (const rootId of commit.rootIds) this.#rootIds.add(rootId);
    for (const wake of commit.wakes) this.#wakes.add(wake);
    if (this.#timer !== null || this.#closed) return;
    const dueMs = Math.max(0, this.#sentAt + SPACING_MS - performance.now());
    this.#timer = setTimeout(() => void this.#flush(), dueMs);
    this.#timer.unref();
  }

  async listen(): Promise<void> {
    if (this.#closed) return;
    const client = new pg.Client(clientOptions(this.#at.address));
    client.on("notification", (message) => this.#hear(message.payload ?? ""));
    client.on("error", () => this.#listenAgain(client));
    client.on("end", () => this.#listenAgain(client));
    this.#listener = client;
    try {
      await client.connect();
      await client.query(`LISTEN ${this.#channel}`);
      this.#retryMs = RECONNECT_MS;
    } catch (error) {
      this.#at.log.warn(
        { error: String(error) },
        "cannot listen for commits of other nodes; polling continues",
      );
      this.#listenAgain(client);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#retry !== null) clearTimeout(this.#retry);
    await this.#listener?.end();
  }

  async #flush(): Promise<void> {
    this.#timer = null;
    this.#sentAt = performance.now();
    const { boot } = this.#at;
    const note: Note = { boot, rootIds: [...this.#rootIds], wakes: [...this.#wakes] };
    this.#rootIds.clear();
    this.#wakes.clear();
    const whole = JSON.stringify(note);
    const empty: Note = { boot, rootIds: [], wakes: [] };
    const payload = whole.length <= PAYLOAD_MAX ? whole : JSON.stringify(empty);
    try {
      await this.#at.pool.query("SELECT pg_notify($1, $2)", [this.#channel, payload]);
    } catch (error) {
      this.#at.log.debug({ error: String(error) }, "could not notify other nodes; they will poll");
    }
  }

  #hear(payload: string): void {
    const note = JSON.parse(payload) as Note;
    if (note.boot !== this.#at.boot) this.#at.heard({ rootIds: note.rootIds, wakes: note.wakes });
  }

  #listenAgain(client: pg.Client): void {
    if (this.#closed || this.#listener !== client) return;
    this.#listener = null;
    this.#retry = setTimeout(() => void this.listen(), this.#retryMs);
    this.#retry.unref();
    this.#retryMs = Math.min(this.#retryMs * 2, RECONNECT_MAX_MS);
  }
}
