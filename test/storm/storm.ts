import { cpSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Chance } from "./chance.ts";
import { checkAll, type Evidence } from "./check.ts";
import { injectFaults, killsOf } from "./faults.ts";
import { FeedWatch } from "./feed-watch.ts";
import type { Finding } from "./findings.ts";
import { journalSizes, readJournals } from "./journals.ts";
import { People } from "./people.ts";
import { comeToRest } from "./rest.ts";
import { readTables, type Tables } from "./tables.ts";
import { type StoreKind, World } from "./world.ts";

export interface StormOptions {
  readonly seed: number;
  readonly store: StoreKind;
  /**
   * How many SIGKILLs to send to the daemon, the agents and PostgreSQL. Other faults, such as suspended
   * processes and cut connections, are not counted.
   */
  readonly kills: number;
  /** The storm continues until there are this many events or `timeMs` has passed. */
  readonly eventsMin?: number;
  /** No fault is injected after this many milliseconds. */
  readonly timeMs: number;
  /** If there are findings, the storm's home is copied into this folder. */
  readonly keep?: string;
  readonly onProgress?: (kills: number) => void;
  /** Called with all evidence after the comparison. */
  readonly onEvidence?: (evidence: Evidence) => void;
  readonly signal?: AbortSignal;
}

export interface StormReport {
  readonly seed: number;
  readonly store: StoreKind;
  readonly kills: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly findings: readonly Finding[];
  readonly kept: string | null;
  readonly isCut: boolean;
}

const FEED_MS = 15_000;
const LEASES_MS = 10_000;

/**
 * Runs families, injects faults at random instants, lets everything come to rest, and compares the result
 * with every promise.
 */
export async function storm(options: StormOptions): Promise<StormReport> {
  const { seed } = options;
  const world = await World.open(options);
  const people = new People(world, {
    acting: new Chance(seed, "acting"),
    answering: new Chance(seed, "answering"),
    poking: new Chance(seed, "poking"),
  });
  const isCut = (): boolean => options.signal?.aborted === true;
  let feed: FeedWatch | null = null;
  let kept: string | null = null;
  try {
    await world.start();
    const watch = new FeedWatch(world, new Chance(seed, "feed"));
    feed = watch;
    await watch.begun();
    people.begin();
    const deadline = performance.now() + options.timeMs;
    await injectFaults(world, new Chance(seed, "faults"), {
      killsMax: options.kills,
      progress: () => watch.events.length,
      poke: (what) => people.poke(what),
      isOver: () => isCut() || performance.now() > deadline,
      onKill: (kills) => options.onProgress?.(kills),
    });
    const isEnough = (): boolean => watch.events.length >= (options.eventsMin ?? 0);
    while (!isEnough() && !isCut() && performance.now() < deadline) await pause(20);
    const evidence = isCut() ? null : await compare(world, people, { feed: watch, isCut });
    if (evidence !== null) options.onEvidence?.(evidence);
    if (world.findings.all.length > 0 && options.keep !== undefined) {
      kept = keep(world, { folder: options.keep, tables: evidence?.tables ?? null });
    }
  } finally {
    await people.end();
    await feed?.close();
    await world.close();
  }
  const { counts, findings, kind: store } = world;
  const report = { seed, store, kills: killsOf(world), counts: counts.all, findings: findings.all };
  return { ...report, kept, isCut: isCut() };
}

/**
 * Returns null if the storm was aborted before everything had come to rest: then there is nothing to compare.
 */
async function compare(
  world: World,
  people: People,
  { feed, isCut }: { feed: FeedWatch; isCut: () => boolean },
): Promise<Evidence | null> {
  await comeToRest(world, people, isCut);
  if (isCut()) return null;
  const tables = await lastTables(world);
  await arrival(feed, tables);
  await world.home.stop();
  for (const each of world.processes()) {
    world.findings.add("orphan", "a process outlived its daemon", { ...each });
  }
  const evidence: Evidence = {
    tables,
    journals: readJournals(world.home.home),
    journalSizes: journalSizes(world.home.home),
    feed: { events: feed.events, resets: feed.resets },
    acknowledged: people.acknowledged,
    cancelled: people.cancelled,
    counts: world.counts,
    findings: world.findings,
  };
  checkAll(evidence);
  return evidence;
}

/**
 * Reads the tables again until no lease is left, because a lease is removed shortly after its process ends.
 */
async function lastTables(world: World): Promise<Tables> {
  const deadline = performance.now() + LEASES_MS;
  for (;;) {
    const tables = await readTables(world.home.home, world.store);
    if (tables.leases.length === 0 || performance.now() > deadline) return tables;
    await pause(200);
  }
}

async function arrival(feed: FeedWatch, tables: Tables): Promise<void> {
  const deadline = performance.now() + FEED_MS;
  while (!feed.hasAll(tables) && performance.now() < deadline) await pause(50);
}

/** Copies the home with its journals, the tables and the log, for investigating the findings. */
function keep(world: World, { folder, tables }: { folder: string; tables: Tables | null }): string {
  const kept = path.resolve(folder, `storm-${world.kind}-${world.seed}`);
  const filter = (from: string): boolean => !from.includes("compile-cache");
  cpSync(world.home.home, path.join(kept, "home"), { recursive: true, filter });
  cpSync(world.output, path.join(kept, "daemon.log"));
  writeFileSync(path.join(kept, "tables.json"), JSON.stringify(tables, null, 1));
  return kept;
}
