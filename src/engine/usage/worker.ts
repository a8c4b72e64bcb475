// The thread that reads the usage of running sessions from their agents' files.
import { parentPort, workerData } from "node:worker_threads";
import type { Usage } from "../../contract/index.ts";
import { addUsage } from "../../domain/receipt.ts";
import { historyReaders } from "../../history/index.ts";
import type { FoundSession, HistoryReader, ReadState } from "../../history/port.ts";
import { ThreadRpc } from "../../system/thread-rpc.ts";
import type { UsageOptions, UsageSide } from "./thread.ts";

interface Reading {
  readonly found: FoundSession;
  state: ReadState | null;
}

const port = parentPort;
if (port === null) throw new Error("this runs as a thread of the daemon");
const options = workerData as UsageOptions;
const readings = new Map<string, Reading>();
/** Sessions whose file was not found, and when it was last searched for. */
const missed = new Map<string, number>();
/**
 * Maximum number of sessions in each map, higher than the number of sessions that run at once. A dropped
 * session's file is searched for again.
 */
const KEPT_MAX = 512;
/** Minimum time between two searches for one session's file: searching a user's folders may take long. */
const MISSED_MS = 200;
/** Texts of entries are cut to this length, because only the usage numbers are needed. */
const TEXT_MAX = 64;

const handlers: UsageSide = {
  async total({ agent, id }) {
    const reader = historyReaders.find((each) => each.agent === agent);
    if (reader === undefined) return null;
    const reading = readings.get(id) ?? (await locate(reader, id));
    if (reading === null) return null;
    keep(readings, id, reading);
    try {
      return await readOn(reader, reading);
    } catch {
      // The file was moved, replaced or removed; the next call searches for it again.
      readings.delete(id);
      return null;
    }
  },
  forget(id) {
    readings.delete(id);
    missed.delete(id);
  },
};

async function locate(reader: HistoryReader, id: string): Promise<Reading | null> {
  if (performance.now() - (missed.get(id) ?? Number.NEGATIVE_INFINITY) < MISSED_MS) return null;
  let newest: FoundSession | null = null;
  const roots = new Set([...reader.roots(options.userHome), ...(options.roots[reader.format] ?? [])]);
  for (const root of roots) {
    for await (const found of reader.discover(root, () => undefined)) {
      if (found.id !== id || found.isSubagent) continue;
      if (newest === null || found.changedAt > newest.changedAt) newest = found;
    }
  }
  if (newest !== null) missed.delete(id);
  else keep(missed, id, performance.now());
  return newest === null ? null : { found: newest, state: null };
}

/** Stores a value and drops the oldest beyond `KEPT_MAX`. Nothing tells this thread that a session ended. */
function keep<T>(map: Map<string, T>, id: string, value: T): void {
  map.delete(id);
  map.set(id, value);
  const [oldest] = map.keys();
  if (map.size > KEPT_MAX && oldest !== undefined) map.delete(oldest);
}

async function readOn(reader: HistoryReader, reading: Reading): Promise<Usage | null> {
  for await (const batch of reader.read(reading.found, reading.state, { textMax: TEXT_MAX })) {
    reading.state = batch.state();
  }
  const { state } = reading;
  if (state === null) return null;
  const all = [state.facts, ...Object.values(state.inline)].map((facts) => facts.usage);
  return { ...all.reduce(addUsage), usd: state.facts.usage.usd };
}

const rpc = new ThreadRpc<Record<string, never>>((packet) => port.postMessage(packet), handlers);
port.on("message", rpc.receive);
