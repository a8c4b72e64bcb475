import { setTimeout as rest } from "node:timers/promises";
import path from "node:path";
import { isFollowed, isOpen, type Member } from "./catalog.ts";
import type { Context } from "./context.ts";
import { noLongerDoubted } from "./live-list.ts";
import { scan, scanNear } from "./scan.ts";
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
/** And of those that have changed. */
const CHANGED_AT_ONCE = 4;
/** What was written longer ago than this and is read for the first time has not just happened. */
const OLD_MS = 5 * 60_000;
const FOREIGN_MAX = 10_000;
/** A new project with a new session that has sub-agents: so many folders come at once. */
const ENTER_DEPTH = 4;

/**
 * Everything the reading thread does, in three loops that never wait for each other: what is known to have
 * changed is read at once; all that was never read is read, newest first; and now and then everything is
 * looked at, because a watch may miss something. A family is only ever worked on by one of them.
 */
export class Scheduler {
  readonly #context: Context;
  readonly #work: Work;
  readonly #watch: Watch;
  readonly #unread = new Map<string, Set<Member>>();
  /** Families that could not be written: how often, and before when not to try again. */
  readonly #failed = new Map<string, { count: number; until: number }>();
  /** With when they were written. */
  readonly #changed = new Map<Member, number>();
  readonly #changedReads = new Set<Promise<void>>();
  #gathering: NodeJS.Timeout | null = null;
  readonly #unknown = new Set<string>();
  #gatheringUnknown: NodeJS.Timeout | null = null;
  #nearMs = 0;
  #scanning: Promise<void> | null = null;
  #scanAgain = false;
  #scanMs = 0;
  #scannedAt = 0;
  #reading: Promise<void> | null = null;
  #timers: NodeJS.Timeout[] = [];
  #isFirst = true;
  /** Looks that somebody asked for and that are not done. */
  #askedLooks = 0;
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
    this.#askedLooks += 1;
    try {
      await progress.tellNow();
      await this.look();
    } finally {
      this.#askedLooks -= 1;
    }
    if (this.#askedLooks > 0) return;
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
    return this.#alone(() => this.#lookOnce());
  }

  /** Two looks at once would find the same things. */
  #alone(look: () => Promise<void>): Promise<void> {
    this.#scanning = look().finally(() => {
      this.#scanning = null;
      if (this.#scanAgain) this.#lookSoon();
    });
    return this.#scanning;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    if (this.#gatheringUnknown !== null) clearTimeout(this.#gatheringUnknown);
    this.#watch.close();
  }

  async #lookOnce(): Promise<void> {
    const { progress, catalog, readings, signal } = this.#context;
    this.#scanAgain = false;
    const isFirst = this.#isFirst;
    const unread: Member[] = [];
    const { foundMs } = await scan(this.#context, (found) => {
      unread.push(...found);
      if (!isFirst) return;
      // What one agent left is read while another one's files are still being listed.
      for (const member of found) this.#later(member);
      progress.tell();
      if (found.length > 0) this.#readAll();
    });
    if (signal.aborted) return;
    this.#isFirst = false;
    this.#scanMs = foundMs;
    this.#scannedAt = Date.now();
    for (const { roots } of readings) for (const root of roots) this.#watch.follow(root, catalog.paths());
    if (isFirst) {
      progress.scan.listedAt = Date.now();
      progress.scan.phase = "reading";
      await progress.tellNow();
      await this.#judgeOpen(unread);
      this.#readAll();
    } else {
      this.#take(unread);
      await this.#readChanged();
    }
  }

  /** What has just happened is told as it comes; what is only found now is read like everything at first. */
  #take(unread: readonly Member[]): void {
    const now = Date.now();
    const since = this.#context.progress.scan.startedAt ?? 0;
    for (const member of unread) {
      // A look in the middle of the first reading finds most of it unread still.
      if (this.#unread.get(member.familyKey)?.has(member)) continue;
      const writtenAt = member.found?.changedAt ?? 0;
      const isOld = writtenAt < since || now - writtenAt > OLD_MS;
      if (member.readBytes === 0 && isOld) this.#later(member);
      else this.#changed.set(member, writtenAt);
    }
    if (this.#unread.size > 0) this.#readAll();
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
    this.#reading = Promise.all(readers).then(() => {
      this.#reading = null;
      void this.#try(() => this.#allRead());
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
    // Before everything is listed, having read what is known is not having read all. An asked look reports by itself.
    if (signal.aborted || this.#isFirst || this.#askedLooks > 0) return;
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
    if (others.length > 0) this.#lookSoon();
    else if (member === undefined || member.kind === "empty") this.#lookNear(file);
    else if (isFollowed(member)) {
      this.#changed.set(member, Date.now());
      this.#gathering ??= setTimeout(() => void this.#readChanged(), GATHER_MS);
    }
  }

  async #enter(folder: string): Promise<void> {
    if (await this.#watch.enter(folder, ENTER_DEPTH)) this.#lookNear(folder);
  }

  /** Something came that nobody knows: only what lies around it is looked through, so that it is there at once. */
  #lookNear(file: string): void {
    this.#unknown.add(file);
    const waitMs = Math.max(GATHER_MS, this.#nearMs);
    this.#gatheringUnknown ??= setTimeout(() => void this.#try(() => this.#lookNearAll()), waitMs);
  }

  async #lookNearAll(): Promise<void> {
    this.#gatheringUnknown = null;
    // The scan reports its own error; here only its end matters.
    while (this.#scanning !== null) await this.#scanning.catch(() => undefined);
    const files = [...this.#unknown];
    this.#unknown.clear();
    await this.#alone(async () => {
      const from = performance.now();
      const { unread, isEnough } = await scanNear(this.#context, files);
      this.#nearMs = performance.now() - from;
      for (const { roots } of this.#context.readings)
        for (const root of roots) {
          this.#watch.follow(
            root,
            unread.map((member) => member.path),
          );
        }
      this.#take(unread);
      if (!isEnough) this.#scanAgain = true;
    });
    await this.#readChanged();
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

  /** Resolves when nothing that has changed is left to be read. */
  async #readChanged(): Promise<void> {
    this.#gathering = null;
    for (let free = CHANGED_AT_ONCE - this.#changedReads.size; free > 0; free -= 1) {
      const reads = this.#readLastWritten().finally(() => this.#changedReads.delete(reads));
      this.#changedReads.add(reads);
    }
    await Promise.all(this.#changedReads);
    this.#context.progress.tell();
  }

  /** Family after family, the one that was written last first. */
  async #readLastWritten(): Promise<void> {
    while (this.#changed.size > 0 && !this.#context.signal.aborted) {
      let last: [Member, number] | null = null;
      for (const each of this.#changed) if (last === null || each[1] > last[1]) last = each;
      const { familyKey } = (last as [Member, number])[0];
      const members = [...this.#changed.keys()].filter((member) => member.familyKey === familyKey);
      for (const member of members) this.#changed.delete(member);
      await this.#try(() => this.#work.read(familyKey, members, true));
    }
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
