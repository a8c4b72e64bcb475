import { asError } from "../system/error.ts";
import { checkpointReads, checkpointWrites } from "./tables/checkpoint.ts";
import { draftReads, draftWrites } from "./tables/draft.ts";
import { entryReads, entryWrites } from "./tables/entry.ts";
import type { EntryIndex } from "./search/entry-index.ts";
import { historyReads, historyWrites } from "./tables/history.ts";
import { leaseReads, leaseWrites } from "./tables/lease.ts";
import { messageReads, messageWrites } from "./tables/message.ts";
import type { NewEvent, Reads, Tx } from "./port/store.ts";
import { retentionReads, retentionWrites } from "./tables/retention.ts";
import { scopeMoveReads, scopeMoveWrites } from "./tables/scope-move.ts";
import { sessionReads, sessionWrites } from "./tables/session.ts";
import type { Query, Row, Sql } from "./sql.ts";
import { tokenReads, tokenWrites } from "./tables/token.ts";
import { triggerReads, triggerWrites } from "./tables/trigger.ts";
import { turnReads, turnWrites } from "./tables/turn.ts";
import { treeReads, treeWrites, writeEvents } from "./tables/event.ts";

export function readsOver(q: Query): Reads {
  return {
    sessions: sessionReads(q),
    messages: messageReads(q),
    turns: turnReads(q),
    entries: entryReads(q),
    drafts: draftReads(q),
    triggers: triggerReads(q),
    checkpoints: checkpointReads(q),
    retention: retentionReads(q),
    scopeMoves: scopeMoveReads(q),
    leases: leaseReads(q),
    tokens: tokenReads(q),
    history: historyReads(q),
    trees: treeReads(q),
  };
}

/**
 * Runs queries until it is revoked, and remembers the first failure. On PostgreSQL a failed query aborts the
 * transaction even if the closure swallows the error. On SQLite the remembered failure has the same effect.
 */
export class GuardedQuery implements Query {
  failure: Error | null = null;
  readonly #base: Query;
  #revoked: string | null = null;

  constructor(base: Query) {
    this.#base = base;
  }

  revoke(reason: string): void {
    this.#revoked = reason;
  }

  all(statement: Sql): Promise<Row[]> {
    return this.#guard((base) => base.all(statement));
  }

  get(statement: Sql): Promise<Row | null> {
    return this.#guard((base) => base.get(statement));
  }

  run(statement: Sql): Promise<number> {
    return this.#guard((base) => base.run(statement));
  }

  async #guard<T>(ask: (base: Query) => Promise<T>): Promise<T> {
    if (this.#revoked !== null) throw new Error(this.#revoked);
    try {
      return await ask(this.#base);
    } catch (error) {
      this.failure ??= asError(error);
      throw error;
    }
  }
}

/**
 * The transaction that a closure works on. Each group of methods (`sessions`, `turns`, …) is created on first
 * use, because most closures use only three groups.
 */
export class OpenTx implements Tx {
  readonly rootId: string;
  readonly events: NewEvent[] = [];
  readonly wakes = new Set<string>();
  readonly #q: GuardedQuery;
  readonly #index: EntryIndex;
  #sessions: Tx["sessions"] | undefined;
  #messages: Tx["messages"] | undefined;
  #turns: Tx["turns"] | undefined;
  #entries: Tx["entries"] | undefined;
  #triggers: Tx["triggers"] | undefined;
  #leases: Tx["leases"] | undefined;
  #closed = false;

  constructor(q: Query, rootId: string, index: EntryIndex) {
    this.#q = new GuardedQuery(q);
    this.rootId = rootId;
    this.#index = index;
  }

  get tree(): Tx["tree"] {
    return treeWrites(this.#q, this.rootId);
  }

  get trees(): Tx["trees"] {
    return treeReads(this.#q);
  }

  get sessions(): Tx["sessions"] {
    return (this.#sessions ??= { ...sessionReads(this.#q), ...sessionWrites(this.#q, this.rootId) });
  }

  get messages(): Tx["messages"] {
    return (this.#messages ??= { ...messageReads(this.#q), ...messageWrites(this.#q, this.rootId) });
  }

  get turns(): Tx["turns"] {
    return (this.#turns ??= { ...turnReads(this.#q), ...turnWrites(this.#q, this.rootId) });
  }

  get entries(): Tx["entries"] {
    return (this.#entries ??= { ...entryReads(this.#q), ...entryWrites(this.#q, this.rootId, this.#index) });
  }

  get drafts(): Tx["drafts"] {
    return { ...draftReads(this.#q), ...draftWrites(this.#q, this.rootId) };
  }

  get triggers(): Tx["triggers"] {
    return (this.#triggers ??= { ...triggerReads(this.#q), ...triggerWrites(this.#q, this.rootId) });
  }

  get checkpoints(): Tx["checkpoints"] {
    return { ...checkpointReads(this.#q), ...checkpointWrites(this.#q, this.rootId) };
  }

  get scopeMoves(): Tx["scopeMoves"] {
    return { ...scopeMoveReads(this.#q), ...scopeMoveWrites(this.#q, this.rootId, this.#index) };
  }

  get retention(): Tx["retention"] {
    return { ...retentionReads(this.#q), ...retentionWrites(this.#q, this.rootId) };
  }

  get leases(): Tx["leases"] {
    return (this.#leases ??= { ...leaseReads(this.#q), ...leaseWrites(this.#q, this.rootId) });
  }

  get history(): Tx["history"] {
    return { ...historyReads(this.#q), ...historyWrites(this.#q, this.rootId, this.#index) };
  }

  get tokens(): Tx["tokens"] {
    return { ...tokenReads(this.#q), ...tokenWrites(this.#q) };
  }

  append(event: NewEvent): void {
    if (this.#closed) throw new Error("an event was appended after the write had ended");
    this.events.push(event);
  }

  wake(sessionId: string): void {
    if (this.#closed) throw new Error("a wake was requested after the write had ended");
    this.wakes.add(sessionId);
  }

  /** Runs the closure, then numbers and writes its events. The transaction cannot be used afterwards. */
  async run<T>(work: (tx: Tx) => Promise<T>, xid: () => number): Promise<T> {
    try {
      const value = await work(this);
      this.#closed = true;
      if (this.#q.failure !== null) throw this.#q.failure;
      const { rootId, events } = this;
      if (events.length > 0) await writeEvents(this.#q, { rootId, xid: xid() }, events);
      return value;
    } finally {
      this.revoke("The write has ended; its transaction can no longer be used.");
    }
  }

  revoke(reason: string): void {
    this.#closed = true;
    this.#q.revoke(reason);
  }
}
