import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { silentLog } from "../../log.ts";
import { openStore } from "../../store/open.ts";
import type { MessageRecord, SessionRecord, Store, Tx, TurnRecord } from "../../store/port/store.ts";
import { aChild, aSession, aTurn } from "../../store/testing/sample.ts";

/** Opens a family of sessions on the real embedded store, with an idle root. */
export async function openFamily(t: TestContext): Promise<Family> {
  const folder = mkdtempSync(path.join(tmpdir(), "kinfold-kernel-"));
  const store = await openStore({
    config: { store: "sqlite", node: "local" },
    paths: { database: path.join(folder, "kinfold.db") },
    boot: randomUUID(),
    log: silentLog,
  });
  t.after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const root = aSession(IDLE);
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return new Family(store, root.id);
}

export const IDLE = { round: 0, roundOpen: false, roundOpenedAt: null } as const;

export class Family {
  readonly store: Store;
  readonly rootId: string;

  constructor(store: Store, rootId: string) {
    this.store = store;
    this.rootId = rootId;
  }

  write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.store.write(this.rootId, work);
  }

  async session(id: string = this.rootId): Promise<SessionRecord> {
    return (await this.store.read.sessions.byId(id))!;
  }

  async add(parentId: string, fields: Partial<SessionRecord> = {}): Promise<SessionRecord> {
    const child = aChild(await this.session(parentId), fields);
    await this.write((tx) => tx.sessions.add(child));
    return child;
  }

  /** Runs `work` with the session's row, read under the lock. */
  change<T>(id: string, work: (tx: Tx, session: SessionRecord) => Promise<T>): Promise<T> {
    return this.write(async (tx) => work(tx, (await tx.sessions.byId(id))!));
  }

  startTurn(id: string, fields: Partial<TurnRecord> = {}): Promise<TurnRecord> {
    return this.change(id, (tx, session) => tx.turns.add(aTurn(id, { round: session.round, ...fields })));
  }

  async settleTurn(turn: TurnRecord, status: "completed" | "failed" = "completed"): Promise<void> {
    await this.write((tx) => tx.turns.patchRunning(turn.id, turn.fence, { status, settledAt: 2 }));
  }

  inbox(id: string = this.rootId): Promise<MessageRecord[]> {
    return this.store.read.messages.ofSession(id, ["queued", "taken", "landed", "void"]);
  }

  async callbacks(id: string = this.rootId): Promise<MessageRecord[]> {
    return (await this.inbox(id)).filter((message) => message.kind === "callback");
  }

  async events(): Promise<string[]> {
    const events = await this.store.feed.ofTree(this.rootId, 0, 1_000);
    return events.map((event) => event.type);
  }
}
