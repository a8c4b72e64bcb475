import { session } from "../../contract/testing/session.ts";
import { randomUUID } from "node:crypto";
import { OPERATIONS, Refusal } from "../../contract/index.ts";
import type { Caller, Event, Fragment, OperationName, Session, ToolRole } from "../../contract/index.ts";
import { silentLog } from "../../log.ts";
import type { CallerContext, Feed, FeedBatch, FeedRequest, Gate, Operations } from "../../operations/port.ts";
import { createServer } from "../http.ts";
import type { HttpServer } from "../http.ts";
import type { ServerOptions } from "../routes.ts";

/** Small in-memory operations and gate, for tests of the layers in front of them. */
export interface FakeOperations {
  readonly operations: Operations;
  readonly gate: Gate;
  readonly tokens: Map<string, Caller>;
  /** Roles by caller id; every other caller gets all tools. */
  readonly roles: Map<string, ToolRole>;
  readonly feed: MemoryFeed;
  readonly givenBack: { caller: Caller; messageIds: readonly string[] }[];
  readonly spawnsLost: { caller: Caller; sessionId: string }[];
}

export const PERSON = "person-token";
export const person: Caller = { kind: "person", id: "p1", name: "Ada" };

export function sessionCaller(): Extract<Caller, { kind: "session" }> {
  return { kind: "session", id: randomUUID(), rootId: randomUUID(), fence: 1 };
}

export function fakeOperations(own: Partial<Operations> = {}): FakeOperations {
  const tokens = new Map<string, Caller>([[PERSON, person]]);
  const feed = new MemoryFeed();
  const givenBack: FakeOperations["givenBack"] = [];
  const spawnsLost: FakeOperations["spawnsLost"] = [];
  const roles = new Map<string, ToolRole>();
  const gate: Gate = {
    identify: async (token) => {
      const caller = tokens.get(token);
      return caller === undefined ? null : known(caller, roles.get(caller.id));
    },
    giveBack: async (caller, messageIds) => void givenBack.push({ caller: plain(caller), messageIds }),
    spawnReplyLost: async (caller, sessionId) => void spawnsLost.push({ caller: plain(caller), sessionId }),
    unread: () => Promise.resolve(0),
    writesWaiting: () => 0,
    feed: (_caller, request) => feed.open(request),
  };
  const missing = (name: string) => () =>
    Promise.reject(new Refusal("not_available", `${name} is not in this test`));
  const names = Object.keys(OPERATIONS) as OperationName[];
  const operations = {
    ...Object.fromEntries(names.map((name) => [name, missing(name)])),
    ...own,
  } as Operations;
  return { operations, gate, tokens, roles, feed, givenBack, spawnsLost };
}

/** Returns a caller's context; only its tools matter here. */
export function known(caller: Caller, role: ToolRole = "full"): CallerContext {
  return { ...caller, self: null, visible: "all", role, withheld: [] };
}

/** Returns the caller without the fields that the gate added. */
function plain(caller: Caller): Caller {
  const {
    self: _self,
    visible: _visible,
    role: _role,
    withheld: _withheld,
    ...rest
  } = caller as CallerContext;
  return rest;
}

export interface Running extends FakeOperations {
  readonly url: string;
  readonly port: number;
  readonly server: HttpServer;
}

export async function start(fake: FakeOperations, options: Partial<ServerOptions> = {}): Promise<Running> {
  const server = createServer({
    operations: fake.operations,
    gate: fake.gate,
    log: silentLog,
    version: "0.0.0-test",
    config: { host: "127.0.0.1", port: 0, allowHosts: [], allowRemote: false, tls: null },
    ...options,
  });
  return { ...fake, ...(await server.listen()), server };
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

/** A feed of numbered events of any trees; a cursor is the epoch and the number of events so far. */
export class MemoryFeed {
  epoch = "e1";
  readonly #batches: FeedBatch[] = [];
  readonly #wakes = new Set<() => void>();
  readers = 0;
  /** The number of batches that readers have taken. */
  given = 0;
  readonly #whenUnread: (() => void)[] = [];

  /** Resolves when there is no reader. */
  unread(): Promise<void> {
    if (this.readers === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenUnread.push(resolve));
  }

  push(events: readonly Event[], fragments: readonly Fragment[] = []): void {
    this.#batches.push({ cursor: `${this.epoch}.${this.#batches.length + 1}`, events, fragments });
    for (const wake of this.#wakes) wake();
  }

  async *open(request: FeedRequest): Feed & AsyncGenerator<FeedBatch, void> {
    const [epoch, count] = request.after?.split(".") ?? [this.epoch, this.#batches.length];
    if (epoch !== this.epoch) throw new Refusal("feed_reset", "The cursor is of another epoch.");
    let next = Number(count);
    this.readers += 1;
    try {
      yield { cursor: `${this.epoch}.${next}`, events: [], fragments: [] };
      while (!request.signal.aborted) {
        const batch = this.#batches[next];
        if (batch === undefined) await this.#more(request.signal);
        else yield batch;
        if (batch !== undefined) {
          next += 1;
          this.given += 1;
        }
      }
    } finally {
      this.readers -= 1;
      if (this.readers === 0) for (const resolve of this.#whenUnread.splice(0)) resolve();
    }
  }

  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#wakes.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#wakes.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}

export function sampleEvent(rootId: string, seq: number, text: string | null = null): Event {
  return { rootId, seq, sessionId: rootId, type: "notice", text, data: {}, at: 1 };
}

export function sampleSession(own: Partial<Session> = {}): Session {
  const id = own.id ?? randomUUID();
  const now = Date.now();
  const base = session({ id, name: null, model: "sim-1", source: "subsession", status: "running" });
  return {
    ...base,
    effective: { ...base.effective, agentVersion: null, model: "sim-1" },
    ready: false,
    evidence: { state: "working", reason: "npm test", confidence: "certain", at: now },
    seen: false,
    createdAt: now,
    updatedAt: now,
    lastActivityAt: now,
    ...own,
  };
}
