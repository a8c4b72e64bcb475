import path from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Paths } from "../src/config/index.ts";

/** What measurements are compared with: bare SQLite with the same durability. */
export class RawSqlite {
  readonly #db: DatabaseSync;
  readonly #statement: Record<"begin" | "commit" | "session" | "message" | "event", StatementSync>;
  #count = 0;

  constructor(paths: Paths) {
    this.#db = new DatabaseSync(path.join(paths.home, "raw.db"));
    this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
      PRAGMA wal_autocheckpoint = 0;
      CREATE TABLE sessions (id TEXT PRIMARY KEY, body TEXT) STRICT;
      CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, body TEXT) STRICT;
      CREATE TABLE events (seq INTEGER PRIMARY KEY, session_id TEXT, body TEXT) STRICT`);
    this.#statement = {
      begin: this.#db.prepare("BEGIN IMMEDIATE"),
      commit: this.#db.prepare("COMMIT"),
      session: this.#db.prepare("INSERT INTO sessions VALUES (?, ?)"),
      message: this.#db.prepare("INSERT INTO messages VALUES (?, ?, ?)"),
      event: this.#db.prepare("INSERT INTO events (session_id, body) VALUES (?, ?)"),
    };
  }

  commitOne(): void {
    const { begin, event, commit } = this.#statement;
    begin.run();
    event.run(this.#id(), BODY);
    commit.run();
  }

  /** Commits the minimum of a spawn: a session, its first message, an event. */
  commitThree(): void {
    const { begin, session, message, event, commit } = this.#statement;
    const id = this.#id();
    begin.run();
    session.run(id, BODY);
    message.run(id, id, BODY);
    event.run(id, BODY);
    commit.run();
  }

  /** Truncates the write-ahead log, as the daemon's WAL checkpoints do. */
  walCheckpoint(): void {
    this.#db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  close(): void {
    this.#db.close();
  }

  #id(): string {
    this.#count += 1;
    return `01996d2a-0000-7000-8000-${String(this.#count).padStart(12, "0")}`;
  }
}

const BODY = "x".repeat(200);
