// The import thread: it reads, parses, cuts and redacts the files of agents, so that the daemon's main thread
// need not.
import { parentPort, workerData } from "node:worker_threads";
import { historyReaders } from "../../history/index.ts";
import { systemProbe } from "../../system/process-probe.ts";
import { Catalog, countAll } from "../catalog.ts";
import { type Context, ProgressPublisher } from "../context.ts";
import { Scheduler } from "../scheduler.ts";
import { ThreadRpc } from "../../system/thread-rpc.ts";
import { LiveList } from "../live-list.ts";
import { SharedPrefixes } from "../shared-prefix.ts";
import { CurrentTasks } from "./current-tasks.ts";
import type { ImportOptions, ReaderSide, StoreSide } from "./protocol.ts";
import { whySetAside } from "./restarts.ts";

const port = parentPort;
if (port === null) throw new Error("this runs as a thread of the daemon");
const options = workerData as ImportOptions;
const ending = new AbortController();
const readings = historyReaders.map((reader) => ({
  reader,
  roots: [...new Set([...reader.roots(options.userHome), ...(options.roots[reader.format] ?? [])])],
}));

const handlers: ReaderSide = {
  async scan(exclude) {
    context.rechecksExcluded = JSON.stringify(exclude) !== JSON.stringify(context.exclude);
    context.exclude = exclude;
    context.setAside = [];
    await started;
    await scheduler.scanAsked();
    context.rechecksExcluded = false;
  },
  async stop() {
    ending.abort();
    scheduler.stop();
  },
};
const rpc = new ThreadRpc<StoreSide>((packet) => port.postMessage(packet), handlers);
port.on("message", rpc.receive);
const catalog = new Catalog(rpc);
const tasks = new CurrentTasks(options.taskMemory, options.isCareful);
const context: Context = {
  rpc,
  catalog,
  options,
  readings,
  sharedPrefixes: new SharedPrefixes(),
  live: new LiveList({
    probe: systemProbe,
    freshMs: options.probeMs / 2,
    tasks,
    isSetAside: (task) => whySetAside(context.setAside, task) !== null,
  }),
  grown: new Map(),
  doubted: new Map(),
  progress: new ProgressPublisher(rpc, () => countAll(catalog, readings)),
  signal: ending.signal,
  tasks,
  setAside: options.setAside,
  exclude: options.exclude,
  rechecksExcluded: false,
};
const scheduler = new Scheduler(context);
const started = scheduler.start();
