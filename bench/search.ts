import { execFile } from "node:child_process";
import { rmSync, statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as rest } from "node:timers/promises";
import { promisify } from "node:util";
import { randomUUID } from "node:crypto";
import type { Paths } from "../src/config/index.ts";
import { connect } from "../src/client/index.ts";
import { silentLog } from "../src/log.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/port/store.ts";
import { append, BATCH, Corpus, exported, fill } from "./corpus.ts";
import { DaemonProcess } from "./daemon-process.ts";
import { benchConfig, inHome } from "./home.ts";
import { atLeast, atMost, type Measurement, type Row } from "./measurement.ts";
import { inTurn, median, percentile, ratio, timeMs } from "./sample.ts";

const ENTRIES = 100_000;
const SESSIONS = 2_000;
const QUERIES = 200;
/** Number of untimed queries of each kind that run first, so that caches are filled as in normal use. */
const WARM_UP = 60;
const GREPS = 7;
const STORM = 8;
const ASKS = 400;
const ROUNDS = 40;
/** After this time without a change, the index counts as fully merged. */
const STEADY_MS = 4_000;

/**
 * Fills a store with a hundred thousand entries and measures the cost of one more entry, the size on disk,
 * and the time of a search.
 */
export const search: Measurement = {
  name: "search",
  run: () =>
    inHome(async (paths) => {
      const corpus = new Corpus();
      corpus.plan(SESSIONS);
      const store = await open(paths.database);
      await fill(store, corpus, ENTRIES);
      const text = path.join(paths.home, "exported");
      await exported(store, corpus, text);
      const rows = [await appending(store, corpus, paths)];
      await store.close();
      rows.push(sizeRow(paths, corpus));
      const daemon = await DaemonProcess.start(paths);
      try {
        await daemon.healthy();
        await daemon.atWork();
        await tended(paths.database);
        rows.push(...(await searching(daemon, corpus)));
        rows.push(await grepping(daemon, corpus, text));
        rows.push(await storming(daemon, corpus));
      } finally {
        await daemon.stop();
      }
      return rows;
    }),
};

/** Waits until the daemon has merged the segments of its search index, which it does while it is idle. */
async function tended(database: string): Promise<void> {
  const db = new DatabaseSync(database, { readOnly: true });
  const parts = db.prepare("SELECT segid, count(*) FROM entry_index_idx GROUP BY segid");
  let before = "";
  for (let since = performance.now(); performance.now() - since < STEADY_MS; await rest(250)) {
    const now = JSON.stringify(parts.all());
    if (now !== before) since = performance.now();
    before = now;
  }
  db.close();
}

function open(database: string): Promise<Store> {
  return openStore({ config: benchConfig(), paths: { database }, boot: randomUUID(), log: silentLog });
}

/** Writes entries alternately into the full store and into a store with a hundredth of its entries. */
async function appending(full: Store, corpus: Corpus, paths: Paths): Promise<Row> {
  const folder = path.join(paths.home, "begun");
  const begun = await open(path.join(folder, "kinfold.db"));
  const small = new Corpus();
  small.plan(SESSIONS);
  await fill(begun, small, ENTRIES / 100);
  const once = async (store: Store, of: Corpus): Promise<number> => {
    const batches = Array.from({ length: 10 }, () => Array.from({ length: BATCH }, () => of.entry()));
    return timeMs(async () => {
      for (const batch of batches) await append(store, of.any(of.sessions), batch);
    });
  };
  const taken = await inTurn(
    ROUNDS,
    () => once(full, corpus),
    () => once(begun, small),
  );
  await begun.close();
  rmSync(folder, { recursive: true });
  const each = (ms: readonly number[]): string => (median(ms) / 10).toFixed(2);
  const note = `${each(taken.a)} ms for ${BATCH} entries at ${ENTRIES}, ${each(taken.b)} ms at ${ENTRIES / 100}`;
  return {
    what: "append to a full store, against a small one",
    value: ratio(taken),
    unit: "times",
    goal: atMost(1.2),
    note,
  };
}

function sizeRow(paths: Paths, corpus: Corpus): Row {
  const bytes = statSync(paths.database).size;
  const megabytes = (count: number): string => `${(count / 1_000_000).toFixed(0)} MB`;
  const note = `${megabytes(bytes)} with sessions and index for ${megabytes(corpus.bytes)} of text`;
  return {
    what: "size of store and index, against the text",
    value: bytes / corpus.bytes,
    unit: "times",
    goal: atMost(3),
    note,
  };
}

type Ask = (corpus: Corpus, n: number) => { query: string; id?: string };

const KINDS: readonly (readonly [what: string, ask: Ask, p99Ms: number])[] = [
  ["rare", (corpus, n) => ({ query: corpus.word(20_000 + n * 199) }), 50],
  ["common", (corpus, n) => ({ query: corpus.word(n % 40) }), 100],
  [
    "five words",
    (corpus, n) => ({ query: [1, 9, 70, 900, 9_000].map((rank) => corpus.word(rank + n)).join(" ") }),
    50,
  ],
  ["no hit", (_corpus, n) => ({ query: `nowhere${n}` }), 50],
  ["one session", (corpus, n) => ({ query: corpus.word(n % 40), id: corpus.sessions[n * 7]!.id }), 50],
];

async function searching(daemon: DaemonProcess, corpus: Corpus): Promise<Row[]> {
  const client = connect({ url: daemon.url, token: daemon.token });
  const rows: Row[] = [];
  for (const [, ask] of KINDS) {
    for (let n = 0; n < WARM_UP; n++) await client.search(ask(corpus, QUERIES + n));
  }
  for (const [what, ask, p99Ms] of KINDS) {
    const taken: number[] = [];
    let found = 0;
    for (let n = 0; n < QUERIES; n++) {
      const input = ask(corpus, n);
      taken.push(await timeMs(async () => (found += (await client.search(input)).hits.length)));
    }
    const note = `${QUERIES} over HTTP, ${(found / QUERIES).toFixed(1)} hits each`;
    rows.push(
      { what: `search, ${what}, p50`, value: median(taken), unit: "ms", goal: atMost(5), note },
      { what: `search, ${what}, p99`, value: percentile(taken, 99), unit: "ms", goal: atMost(p99Ms), note },
    );
  }
  return rows;
}

async function grepping(daemon: DaemonProcess, corpus: Corpus, folder: string): Promise<Row> {
  const client = connect({ url: daemon.url, token: daemon.token });
  let n = 0;
  const word = (): string => corpus.word(5_000 + n * 97);
  const taken = await inTurn(
    GREPS,
    () => {
      n += 1;
      return timeMs(() => run("grep", ["-r", "-i", "-w", word(), folder], { maxBuffer: 1e9 }).catch(noHit));
    },
    () => timeMs(() => client.search({ query: word() })),
  );
  const note = `grep -riw ${median(taken.a).toFixed(0)} ms, search ${median(taken.b).toFixed(1)} ms`;
  return { what: "search, faster than grep", value: ratio(taken), unit: "times", goal: atLeast(30), note };
}

const run = promisify(execFile);

/** Ignores exit code 1, with which grep says that it found nothing. */
function noHit(error: { code?: unknown }): void {
  if (error.code !== 1) throw error;
}

async function storming(daemon: DaemonProcess, corpus: Corpus): Promise<Row> {
  const client = connect({ url: daemon.url, token: daemon.token });
  let isOver = false;
  let searches = 0;
  const searcher = async (from: number): Promise<void> => {
    for (let n = from; !isOver; n++) {
      const [, ask] = KINDS[n % KINDS.length]!;
      await client.search(ask(corpus, n % QUERIES));
      searches += 1;
    }
  };
  const storm = Array.from({ length: STORM }, (_, n) => searcher(n * 31));
  const taken: number[] = [];
  for (let ask = 0; ask < ASKS; ask++) taken.push(await timeMs(() => client.health()));
  isOver = true;
  await Promise.all(storm);
  const note = `${ASKS} asked beside ${searches} searches of ${STORM} callers`;
  return {
    what: "health in a search storm, p99",
    value: percentile(taken, 99),
    unit: "ms",
    goal: atMost(20),
    note,
  };
}
