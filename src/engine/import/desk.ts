import path from "node:path";
import { isOpen, type Member } from "./catalog.ts";
import type { Context } from "./context.ts";
import { noLongerDoubted } from "./live-list.ts";
import { scan } from "./scan.ts";
import { Watch } from "./watch.ts";
import { Work } from "./work.ts";

/** Changes that come together are taken together. */
const GATHER_MS = 60;
/** Between two looks at everything, so that a busy home does not mean nothing but looking. */
const REST_MS = 250;
const REST_TIMES = 4;
const SELDOM_TIMES = 40;
const RETRY_MS = 5_000;
const TRIES_MAX = 5;
/** Families that are read at once: while one waits for the store, another is parsed. */
const AT_ONCE = 2;
const FOREIGN_MAX = 10_000;
/** A new project with a new session that has sub-agents: so many folders come at once. */
const ENTER_DEPTH = 4;

/**
 * Everything the reading thread does, in three loops that never wait for each other: what is known to have
 * changed is read at once; all that was never read is read, newest first; and now and then everything is
 * looked at, because a watch may miss something. A family is only ever worked on by one of them.
 */
export class Desk {
  readonly #context: Context;
  readonly #work: Work;
  readonly #watch: Watch;
  readonly #unread = new Map<string, Set<Member>>();
  /** Families that could not be written: how often, and before when not to try again. */
  readonly #failed = new Map<string, { count: number; until: number }>();
  readonly #changed = new Set<Member>();
  #gathering: NodeJS.Timeout | null = null;
  #scanning: Promise<void> | null = null;
  #scanAgain = false;
  #scanMs = 0;
  #scannedAt = 0;
  #reading: Promise<void> | null = null;
  #timers: NodeJS.Timeout[] = [];
  #isFirst = true;
  readonly #foreign = new Set<string>();

  constructor(context: Context) {
    this.#context = context;
    this.#work = new Work(context);
    this.#watch = new Watch((file) => this.#heard(file));
  }

  async start(): Promise<void> {
    const { catalog, progress, options } = this.#context;
    progress.scan.startedAt = Date.now();
    progress.scan.phase = "listing";
    progress.tell();
    await catalog.load();
    await this.look();
    this.#timers.push(
      setInterval(() => this.#seldom(), options.scanMs),
      setInterval(() => void this.#probe(), options.probeMs),
    );
  }

  /** Somebody asked: it is told how far this look has come, as it was with the first. */
  async lookAsked(): Promise<void> {
    const { progress } = this.#context;
    Object.assign(progress.scan, { startedAt: Date.now(), phase: "listing", error: null });
    await progress.tellNow();
    await this.look();
    const isReading = this.#reading !== null;
    const done = isReading ? {} : { readAt: Date.now() };
    Object.assign(progress.scan, {
      phase: isReading ? "reading" : "watching",
      listedAt: Date.now(),
      ...done,
    });
    await progress.tellNow();
  }

  /** Looks at everything; whoever asks meanwhile gets the next look. */
  look(): Promise<void> {
    if (this.#scanning !== null) {
      this.#scanAgain = true;
      return this.#scanning.then(() => this.look());
    }
    this.#scanning = this.#lookOnce().finally(() => {
      this.#scanning = null;
      if (this.#scanAgain) this.#lookSoon();
    });
    return this.#scanning;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#watch.close();
  }

  async #lookOnce(): Promise<void> {
    const { progress, catalog, readings, signal } = this.#context;
    this.#scanAgain = false;
    const from = performance.now();
    const isFirst = this.#isFirst;
    const unread = await scan(this.#context);
    if (signal.aborted) return;
    this.#isFirst = false;
    this.#scanMs = performance.now() - from;
    this.#scannedAt = Date.now();
    for (const { roots } of readings) for (const root of roots) this.#watch.follow(root, catalog.paths());
    if (isFirst) {
      progress.scan.listedAt = Date.now();
      progress.scan.phase = "reading";
      for (const member of unread) this.#later(member);
      await progress.tellNow();
      await this.#judgeOpen(unread);
      this.#readAll();
    } else {
      for (const member of unread) this.#changed.add(member);
      await this.#readChanged();
    }
  }

  /** What was at work when we last looked may have ended since, without a word in its file. */
  async #judgeOpen(unread: readonly Member[]): Promise<void> {
    const toBeRead = new Set(unread.map(({ familyKey }) => familyKey));
    const open = new Set<string>();
    for (const member of this.#context.catalog.members.values())
      if (isOpen(member)) open.add(member.familyKey);
    for (const familyKey of open)
      if (!toBeRead.has(familyKey)) await this.#try(() => this.#work.judge(familyKey));
  }

  #later(member: Member): void {
    const members = this.#unread.get(member.familyKey) ?? new Set();
    this.#unread.set(member.familyKey, members.add(member));
  }

  #readAll(): void {
    if (this.#reading !== null) return;
    const readers = Array.from({ length: AT_ONCE }, () => this.#readUnread());
    this.#reading = Promise.all(readers)
      .then(() => this.#allRead())
      .finally(() => {
        this.#reading = null;
      });
  }

  async #readUnread(): Promise<void> {
    const { signal, catalog } = this.#context;
    while (this.#unread.size > 0 && !signal.aborted) {
      const next = this.#newest();
      if (next === null) {
        await rest(RETRY_MS / 5);
        continue;
      }
      const [familyKey, members] = next;
      this.#unread.delete(familyKey);
      const ordered = [...members].toSorted(
        (a, b) => Number(b.key === familyKey) - Number(a.key === familyKey),
      );
      const isDone = await this.#try(() => this.#work.read(familyKey, ordered, false));
      if (!isDone) this.#again(familyKey, members);
      else if (!catalog.family(familyKey).some(isOpen)) catalog.forget(familyKey);
    }
  }

  /** Something else may be wrong with it than a full disk: then others must not wait for it for ever. */
  #again(familyKey: string, members: Iterable<Member>): void {
    const count = (this.#failed.get(familyKey)?.count ?? 0) + 1;
    this.#failed.set(familyKey, { count, until: Date.now() + RETRY_MS * count });
    if (count < TRIES_MAX) for (const member of members) this.#later(member);
  }

  async #allRead(): Promise<void> {
    const { progress, signal } = this.#context;
    if (signal.aborted) return;
    Object.assign(progress.scan, { phase: "watching", readAt: Date.now(), error: null });
    await progress.tellNow();
  }

  #newest(): [string, Set<Member>] | null {
    let newest: [string, Set<Member>] | null = null;
    let newestAt = -1;
    const now = Date.now();
    for (const [familyKey, members] of this.#unread) {
      if ((this.#failed.get(familyKey)?.until ?? 0) > now) continue;
      for (const { found } of members) {
        if ((found?.changedAt ?? 0) <= newestAt) continue;
        newestAt = found?.changedAt ?? 0;
        newest = [familyKey, members];
      }
    }
    return newest;
  }

  #heard(file: string): void {
    const [member, ...others] = this.#context.catalog.byPath(file);
    if (member === undefined && this.#isForeign(file)) return;
    if (member === undefined) void this.#enter(file);
    if (member === undefined || others.length > 0 || member.kind === "empty") this.#lookSoon();
    else if (member.kind === "imported" || member.kind === "ours") {
      this.#changed.add(member);
      this.#gathering ??= setTimeout(() => void this.#readChanged(), GATHER_MS);
    }
  }

  async #enter(folder: string): Promise<void> {
    if (await this.#watch.enter(folder, ENTER_DEPTH)) this.#lookSoon();
  }

  /**
   * Agents keep other things beside their sessions, and write to some of them all the time. What has come to
   * nothing once, in a folder without a session, is left to the next look at everything.
   */
  #isForeign(file: string): boolean {
    const folder = path.dirname(file);
    if (this.#context.catalog.isFolder(folder)) return false;
    if (this.#foreign.has(file)) return true;
    if (this.#foreign.size >= FOREIGN_MAX) this.#foreign.clear();
    this.#foreign.add(file);
    return false;
  }

  async #readChanged(): Promise<void> {
    this.#gathering = null;
    const changed = [...this.#changed];
    this.#changed.clear();
    const families = Map.groupBy(changed, ({ familyKey }) => familyKey);
    const reads = [...families].map(([familyKey, members]) =>
      this.#try(() => this.#work.read(familyKey, members, true)),
    );
    await Promise.all(reads);
    this.#context.progress.tell();
  }

  #lookSoon(): void {
    if (this.#scanning !== null) {
      this.#scanAgain = true;
      return;
    }
    const waitMs = this.#scannedAt + Math.max(REST_MS, this.#scanMs * REST_TIMES) - Date.now();
    this.#scanAgain = true;
    setTimeout(
      () => {
        if (this.#scanAgain && this.#scanning === null && !this.#context.signal.aborted) {
          void this.#try(() => this.look());
        }
      },
      Math.max(GATHER_MS, waitMs),
    );
  }

  #seldom(): void {
    const restMs = Math.max(this.#context.options.scanMs, this.#scanMs * SELDOM_TIMES);
    if (Date.now() - this.#scannedAt >= restMs) this.#lookSoon();
  }

  /** Only families that are said to work can have stopped, and only what is doubted can work after all. */
  async #probe(): Promise<void> {
    await this.#judgeOpen([]);
    for (const familyKey of await noLongerDoubted(this.#context))
      await this.#try(() => this.#work.judge(familyKey));
  }

  /** False where the store could not take it, which is told until it can. */
  async #try(work: () => Promise<unknown>): Promise<boolean> {
    const { progress, signal } = this.#context;
    try {
      await work();
      progress.scan.error = null;
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      progress.scan.error = error instanceof Error ? error.message : String(error);
      progress.tell();
      return false;
    }
  }
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
