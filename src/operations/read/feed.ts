import { setTimeout as pause } from "node:timers/promises";
import type { Event, Fragment } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { EventRecord, TreeRecord } from "../../store/port/store.ts";
import { callerSession, requireRight } from "../access/authority.ts";
import type { OperationDeps } from "../deps.ts";
import type { CallerContext, Feed, FeedBatch, FeedRequest } from "../port.ts";
import { resolve } from "../access/resolve.ts";
import { Changes } from "../wait/until.ts";
import { sees, type Visible } from "../../domain/permission.ts";

const BATCH_MS = 20;
const FLOOR_MS = 2_000;
const PAGE = 1_000;
const FRAGMENTS_MAX = 4_096;
/** How many trees a follower remembers. Above this, it forgets all trees that have no recent events. */
const TREES_MAX = 10_000;

/**
 * Yields numbered events from a point onward, then live ones.
 *
 * Over one tree the cursor is `epoch.root.seq` and exact. Over all trees it is `epoch.xmin`: everything below
 * that transaction number has been sent, some events above it may be sent again after a resume, and the
 * client drops duplicates by tree and seq.
 */
export async function* feed(deps: OperationDeps, caller: CallerContext, request: FeedRequest): Feed {
  // A caller that may list sessions may follow them.
  requireRight(caller, "list");
  const changes = new Changes(deps);
  const fragments: Fragment[] = [];
  const unsubscribe = deps.store.onFragment((fragment) => {
    // If the client does not read, drop the oldest fragments. No text is lost: the entries contain it.
    if (fragments.length >= FRAGMENTS_MAX) fragments.splice(0, FRAGMENTS_MAX / 2);
    fragments.push(fragment);
    changes.note();
  });
  try {
    const follow = await Follow.open(deps, caller, request);
    // Send the starting cursor at once, so that a client that is cut off before the first event can resume.
    yield { cursor: follow.cursor(), events: [], fragments: [] };
    while (!request.signal.aborted) {
      const seen = changes.count;
      const batches = await follow.next(fragments.splice(0));
      yield* batches;
      // The pause lets events of a busy store collect, so that they are read in batches.
      if (batches.length === 0) await changes.since(seen, FLOOR_MS, request.signal);
      else await pause(BATCH_MS);
    }
  } finally {
    unsubscribe();
    changes.close();
  }
}

class Follow {
  readonly #deps: OperationDeps;
  readonly #sent = new Map<string, number>();
  readonly #visible = new Map<string, boolean>();
  readonly #scopes: Visible;
  readonly #sessionId: string | null;
  #rootId: string | null = null;
  #from = 0;
  #xmin = 0;

  private constructor(deps: OperationDeps, scopes: Visible, sessionId: string | null) {
    this.#deps = deps;
    this.#scopes = scopes;
    this.#sessionId = sessionId;
  }

  static async open(deps: OperationDeps, caller: CallerContext, request: FeedRequest): Promise<Follow> {
    const self = callerSession(caller);
    const session = request.session === null ? null : await resolve(deps, caller, request.session);
    const tree = request.tree === null ? session : await resolve(deps, caller, request.tree);
    const follow = new Follow(deps, caller.visible, session?.id ?? null);
    // A session can follow only its own family.
    follow.#rootId = tree?.rootId ?? self?.rootId ?? null;
    await follow.#start(request.after);
    return follow;
  }

  async #start(after: string | null): Promise<void> {
    const { feed: reads, read } = this.#deps.store;
    const { xmin } = await reads.point();
    const row = this.#rootId === null ? null : await read.trees.byId(this.#rootId);
    this.#from = this.#xmin = xmin;
    if (this.#rootId !== null) this.#sent.set(this.#rootId, row?.seq ?? 0);
    if (after === null) return;
    const [epoch, first = "", second, ...more] = after.split(".");
    if (epoch !== this.#deps.store.epoch) throw reset("from another epoch of the store");
    if (this.#rootId === null) {
      if (second !== undefined) throw reset("for one tree, but this feed covers all trees");
      this.#from = this.#xmin = numberOf(first, xmin);
      return;
    }
    if (first !== this.#rootId || more.length > 0) throw reset("for another tree");
    this.#sent.set(this.#rootId, numberOf(second ?? "", row?.seq ?? 0));
  }

  /** Returns the events and fragments since the last call. Over one tree, each event has its own cursor. */
  async next(fragments: Fragment[]): Promise<FeedBatch[]> {
    const before = this.#xmin;
    const { xmin } = await this.#deps.store.feed.point();
    const events: Event[] = [];
    for (const tree of await this.#trees(before)) {
      for (const event of await this.#eventsOf(tree)) events.push(viewEvent(event));
    }
    this.#xmin = xmin;
    const live = fragments.filter((each) => this.#wants(each));
    if (events.length === 0 && live.length === 0) return [];
    if (this.#rootId === null) return [{ cursor: this.cursor(), events, fragments: live }];
    const single = events.map((event) => ({
      cursor: this.cursor(event.seq),
      events: [event],
      fragments: [],
    }));
    return live.length === 0 ? single : [...single, { cursor: this.cursor(), events: [], fragments: live }];
  }

  async #trees(since: number): Promise<Numbered[]> {
    const { feed: reads, read } = this.#deps.store;
    if (this.#rootId !== null) {
      const tree = await read.trees.byId(this.#rootId);
      return tree === null || this.#sent.get(tree.rootId) === tree.seq ? [] : [tree];
    }
    const trees = await reads.treesSince(since);
    if (this.#sent.size > TREES_MAX) this.#forget(trees, since);
    const seen: Numbered[] = [];
    for (const tree of trees) {
      if (this.#sent.get(tree.rootId) === tree.seq) continue;
      if (await this.#maySee(tree.rootId)) seen.push(tree);
    }
    return seen;
  }

  /**
   * Forgets all trees except these. All events of the forgotten trees before `since` have been sent, so their
   * next events are read from `since` on.
   */
  #forget(trees: readonly { rootId: string }[], since: number): void {
    const kept = new Set(trees.map((tree) => tree.rootId));
    for (const rootId of this.#sent.keys()) if (!kept.has(rootId)) this.#sent.delete(rootId);
    for (const rootId of this.#visible.keys()) if (!kept.has(rootId)) this.#visible.delete(rootId);
    this.#from = since;
  }

  async #eventsOf({ rootId, seq }: Numbered): Promise<EventRecord[]> {
    const { feed: reads, read } = this.#deps.store;
    let after = this.#sent.get(rootId);
    if (after === undefined) {
      const first = await reads.firstSince(rootId, this.#from);
      // The tree is read after the events, so that events pruned in between are noticed.
      const prunedXid = (await read.trees.byId(rootId))?.prunedXid ?? 0;
      if (prunedXid > 0 && prunedXid >= this.#from) throw reset(PRUNED);
      if (first === null) return [];
      after = first - 1;
    }
    const all: EventRecord[] = [];
    for (;;) {
      const page = await reads.ofTree(rootId, after, PAGE);
      const next = page[0]?.seq ?? Math.max(seq, after) + 1;
      if (next !== after + 1) throw reset(PRUNED);
      all.push(...page);
      after = page.at(-1)?.seq ?? after;
      if (page.length < PAGE) break;
    }
    this.#sent.set(rootId, after);
    return this.#sessionId === null ? all : all.filter((each) => each.sessionId === this.#sessionId);
  }

  async #maySee(rootId: string): Promise<boolean> {
    if (this.#scopes === "all") return true;
    const known = this.#visible.get(rootId);
    if (known !== undefined) return known;
    const root = await this.#deps.store.read.sessions.byId(rootId);
    const visible = root !== null && sees(this.#scopes, root.scope);
    this.#visible.set(rootId, visible);
    return visible;
  }

  #wants(fragment: Fragment): boolean {
    if (this.#sessionId !== null) return fragment.sessionId === this.#sessionId;
    if (this.#rootId !== null) return fragment.rootId === this.#rootId;
    return this.#scopes === "all" || this.#visible.get(fragment.rootId) === true;
  }

  cursor(seq: number | null = null): string {
    const { epoch } = this.#deps.store;
    if (this.#rootId === null) return `${epoch}.${this.#xmin}`;
    return `${epoch}.${this.#rootId}.${seq ?? this.#sent.get(this.#rootId) ?? 0}`;
  }
}

const PRUNED = "older than the events that are kept";

/** A tree with the number of its last event. */
type Numbered = Pick<TreeRecord, "rootId" | "seq">;

function viewEvent({ xid: _, ...event }: EventRecord): Event {
  return event;
}

/** Refuses a number beyond the last event. It was never sent, and to continue after it would skip events. */
function numberOf(text: string, last: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (value > last) throw reset("not from this feed");
  return value;
}

function reset(why: string): Refusal {
  return new Refusal(
    "feed_reset",
    `This cursor is ${why}. Take a snapshot of what you need, then follow the feed without a cursor.`,
  );
}
