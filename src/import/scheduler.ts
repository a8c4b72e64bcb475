import path from "node:path";
import { isFollowed, isOpen, type Member } from "./catalog.ts";
import type { Context } from "./context.ts";
import { WorkQueue } from "./work-queue.ts";
import { noLongerDoubted } from "./live-list.ts";
import { scan, scanNear } from "./scan.ts";
import { Watch } from "./watch.ts";
import { Work } from "./work.ts";
import { asError } from "../system/error.ts";

/** Changes within this time are handled together. */
const GATHER_MS = 60;
/** The minimum pause between two scans, so that a busy home does not cause constant scanning. */
const REST_MS = 250;
const REST_TIMES = 4;
const SELDOM_TIMES = 40;
const RETRY_MS = 5_000;
const TRIES_MAX = 5;
/** At its first read, a file that was last written longer ago than this is not published live. */
const OLD_MS = 5 * 60_000;
const FOREIGN_MAX = 10_000;
/** How many levels of a new folder are watched. A new project with sub-agents creates this many at once. */
const ENTER_DEPTH = 4;

/**
 * How many items of each kind run at once.
 *
 * - `changed`: reads a family that was written just now; last written first.
 * - `unread`: reads a family that existed before; newest first. While one waits for the store, the other is
 *   parsed.
 * - `scan`: lists all sessions. Two at once would find the same ones.
 * - `probe`: judges again the families whose processes may have ended.
 */
const LIMITS = { changed: 4, unread: 2, scan: 1, probe: 1 } as const;
type Kind = keyof typeof LIMITS;

export class Scheduler {
  readonly #context: Context;
  readonly #work: Work;
  readonly #watch: Watch;
  readonly #queue: WorkQueue<Kind>;
  /** The members that wait to be read, by family. One queued item reads all members of a family. */
  readonly #members = { changed: new Map<string, Set<Member>>(), unread: new Map<string, Set<Member>>() };
  /** Files that belong to no known session. */
  readonly #unknown = new Set<string>();
  readonly #foreign = new Set<string>();
  #scannedAt = 0;
  #scanMs = 0;
  #nearMs = 0;

  constructor(context: Context) {
    this.#context = context;
    this.#work = new Work(context);
    this.#watch = new Watch((file) => this.#fileChanged(file));
    const { signal, progress } = context;
    this.#queue = new WorkQueue({
      limits: LIMITS,
      signal,
      onIdle: (kind) => {
        if (kind === "changed") progress.publish();
        if (kind === "unread") void this.#try(() => this.#allRead());
      },
    });
  }

  async start(): Promise<void> {
    await this.#context.catalog.load();
    await this.scanAsked();
  }

  async scanAsked(): Promise<void> {
    const { progress } = this.#context;
    Object.assign(progress.scan, { startedAt: Date.now(), phase: "listing", error: null });
    await progress.publishNow();
    await this.#scanAt(Date.now());
  }

  stop(): void {
    this.#watch.close();
  }

  #add(kind: Kind, key: string, item: { run: () => Promise<void>; dueAt?: number; rank?: number }) {
    return this.#queue.add({ kind, key, ...item, run: () => this.#try(item.run) });
  }

  #scanAt(dueAt: number): Promise<void> {
    return this.#add("scan", "all", { dueAt, run: () => this.#scanAll() });
  }

  #scanSoon(): void {
    const restedAt = this.#scannedAt + Math.max(REST_MS, this.#scanMs * REST_TIMES);
    void this.#scanAt(Math.max(Date.now() + GATHER_MS, restedAt));
  }

  /** Scans everything from time to time, because a watch may miss changes. */
  async #scanAll(): Promise<void> {
    const { progress, options, signal } = this.#context;
    const { listedAt, startedAt } = progress.scan;
    const isFirst = listedAt === null;
    let nextMs = RETRY_MS;
    try {
      const { foundMs } = await scan(this.#context, (found) => this.#take(found, isFirst));
      this.#scanMs = foundMs;
      nextMs = Math.max(options.scanMs, foundMs * SELDOM_TIMES);
    } finally {
      this.#scannedAt = Date.now();
      void this.#scanAt(this.#scannedAt + nextMs);
    }
    if (signal.aborted) return;
    this.#follow(this.#context.catalog.paths());
    if (isFirst) {
      progress.scan.listedAt = Date.now();
      await progress.publishNow();
      await this.#judgeOpen();
      this.#probeLater();
    } else await this.#queue.finish("changed");
    // If another scan was requested meanwhile, that scan publishes the progress.
    if (progress.scan.phase !== "listing" || progress.scan.startedAt !== startedAt) return;
    Object.assign(progress.scan, { phase: "reading", listedAt: Date.now() });
    if (this.#queue.isIdle("unread")) await this.#allRead();
    else await progress.publishNow();
  }

  async #allRead(): Promise<void> {
    const { progress, signal } = this.#context;
    // Until everything is listed, more files to read may still appear.
    if (signal.aborted || progress.scan.phase === "listing") return;
    Object.assign(progress.scan, { phase: "watching", readAt: Date.now(), error: null });
    await progress.publishNow();
  }

  #follow(files: Iterable<string>): void {
    for (const { roots } of this.#context.readings) for (const root of roots) this.#watch.follow(root, files);
  }

  /** Queues files for reading. Files of the first scan and old unread files are not published live. */
  #take(found: readonly Member[], isFirst: boolean): void {
    const { progress } = this.#context;
    const now = Date.now();
    for (const member of found) {
      // A scan during the first reading finds files that are still unread but already queued.
      if (this.#members.unread.get(member.familyKey)?.has(member)) continue;
      const writtenAt = member.found?.changedAt ?? 0;
      const isOld = writtenAt < (progress.scan.startedAt ?? 0) || now - writtenAt > OLD_MS;
      const isUnread = isFirst || (member.readBytes === 0 && isOld);
      this.#read(isUnread ? "unread" : "changed", [member], { rank: writtenAt });
    }
    if (isFirst) progress.publish();
  }

  #read(
    kind: "changed" | "unread",
    members: Iterable<Member>,
    { tries = 1, ...item }: { rank: number; dueAt?: number; tries?: number },
  ): void {
    for (const member of members) {
      const { familyKey } = member;
      const known = this.#members[kind].get(familyKey) ?? new Set();
      this.#members[kind].set(familyKey, known.add(member));
      void this.#add(kind, familyKey, { ...item, run: () => this.#readFamily(kind, familyKey, tries) });
    }
  }

  async #readFamily(kind: "changed" | "unread", familyKey: string, tries: number): Promise<void> {
    const { catalog, signal } = this.#context;
    const members = this.#members[kind].get(familyKey) ?? new Set();
    this.#members[kind].delete(familyKey);
    const isTop = ({ key }: Member): number => (key === familyKey ? 0 : 1);
    try {
      const ordered = [...members].toSorted((a, b) => isTop(a) - isTop(b));
      await this.#work.read(familyKey, ordered, kind === "changed");
      if (kind === "unread" && !catalog.family(familyKey).some(isOpen)) catalog.forget(familyKey);
    } catch (error) {
      // Retries a few times, without delaying other files. After that, the next scan finds the file again.
      if (kind === "unread" && tries < TRIES_MAX && !signal.aborted)
        this.#read(kind, members, { rank: 0, dueAt: Date.now() + RETRY_MS * tries, tries: tries + 1 });
      throw error;
    }
  }

  #fileChanged(file: string): void {
    const [member, ...others] = this.#context.catalog.byPath(file);
    if (member === undefined && this.#isForeign(file)) return;
    if (member === undefined) void this.#enter(file);
    const now = Date.now();
    if (others.length > 0) this.#scanSoon();
    else if (member === undefined || member.kind === "empty") this.#scanNear(file);
    else if (isFollowed(member)) this.#read("changed", [member], { rank: now, dueAt: now + GATHER_MS });
  }

  async #enter(folder: string): Promise<void> {
    if (await this.#watch.enter(folder, ENTER_DEPTH)) this.#scanNear(folder);
  }

  /** An unknown file appeared: scans only its surroundings, so that a new session is shown at once. */
  #scanNear(file: string): void {
    this.#unknown.add(file);
    const dueAt = Date.now() + Math.max(GATHER_MS, this.#nearMs);
    void this.#add("scan", "near", { dueAt, rank: 1, run: () => this.#scanUnknown() });
  }

  async #scanUnknown(): Promise<void> {
    const files = [...this.#unknown];
    this.#unknown.clear();
    const from = performance.now();
    const { unread, isEnough } = await scanNear(this.#context, files);
    this.#nearMs = performance.now() - from;
    this.#follow(unread.map((member) => member.path));
    this.#take(unread, false);
    if (!isEnough) this.#scanSoon();
  }

  /**
   * Agents keep other files beside their sessions and write to some of them constantly. A file in a folder
   * without sessions is examined once; its later changes wait for the next full scan.
   */
  #isForeign(file: string): boolean {
    const folder = path.dirname(file);
    if (this.#context.catalog.isFolder(folder)) return false;
    if (this.#foreign.has(file)) return true;
    if (this.#foreign.size >= FOREIGN_MAX) this.#foreign.clear();
    this.#foreign.add(file);
    return false;
  }

  /**
   * Judges open sessions again, because a session may end without writing to its file. Unread families are
   * judged after they are read.
   */
  async #judgeOpen(): Promise<void> {
    const open = [...this.#context.catalog.members.values()].filter(isOpen);
    for (const familyKey of new Set(open.map((member) => member.familyKey)))
      if (!this.#members.unread.has(familyKey)) await this.#try(() => this.#work.judge(familyKey));
  }

  /** Judges open families, which may have ended, and doubted ones, once it is clear whether they work. */
  async #probe(): Promise<void> {
    this.#probeLater();
    await this.#judgeOpen();
    for (const familyKey of await noLongerDoubted(this.#context))
      await this.#try(() => this.#work.judge(familyKey));
  }

  #probeLater(): void {
    const dueAt = Date.now() + this.#context.options.probeMs;
    void this.#add("probe", "", { dueAt, run: () => this.#probe() });
  }

  /** Publishes a failure, and clears it after the next success. */
  async #try(work: () => Promise<unknown>): Promise<void> {
    const { progress, signal } = this.#context;
    try {
      await work();
      progress.scan.error = null;
    } catch (error) {
      if (signal.aborted) return;
      progress.scan.error = asError(error).message;
      progress.publish();
    }
  }
}
