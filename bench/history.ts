import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import path from "node:path";
import { connect } from "../src/client/index.ts";
import type { HistoryScan } from "../src/contract/index.ts";
import { DaemonProcess } from "./daemon-process.ts";
import { type HistoryData, type HistorySize, makeHistory } from "./history-data.ts";
import { inHome } from "./home.ts";
import { atLeast, atMost, type Measurement, type Row } from "./measurement.ts";
import { median, percentile, timeMs } from "./sample.ts";

/** The goals are for 2 GB of history (`IS_FULL`). The default, a quarter, gives comparable figures sooner. */
const IS_FULL = process.env["BENCH_HISTORY_FULL"] === "1";
const SIZE: HistorySize = {
  families: 20,
  subagentsEach: 50,
  subagentBytes: IS_FULL ? 1_790_000 : 290_000,
  longBytes: 200_000_000,
  lines: 10_000,
  lineSubagents: 50,
};
const OPENINGS = 15;
const LIVE_ROWS = 10;

type Client = ReturnType<typeof connect>;

/** Measures the import of sessions that agents left on disk: listing, importing and opening them. */
export const history: Measurement = {
  name: "history",
  run: () =>
    inHome(async (paths) => {
      const data = makeHistory(path.join(paths.home, "claude"), SIZE);
      const env = { HOME: path.join(paths.home, "nobody"), CLAUDE_CONFIG_DIR: data.root };
      const daemon = await DaemonProcess.start(paths, { env });
      try {
        await daemon.atWork();
        const client = connect({ url: daemon.url, token: daemon.token });
        const imported = [...(await importAll(client, daemon, data)), await indexed(client)];
        return [...imported, ...(await opened(client, data)), ...(await keepingUp(client, data))];
      } finally {
        await daemon.stop();
      }
    }),
};

async function importAll(client: Client, daemon: DaemonProcess, data: HistoryData): Promise<Row[]> {
  const answers: number[] = [];
  const from = performance.now();
  await client.import({});
  for (;;) {
    answers.push(await timeMs(() => client.health({})));
    const { scan } = await client.imported({});
    if (scan.error !== null) throw new Error(scan.error);
    if (scan.phase === "watching")
      return rowsOf(scan, { data, answers, peakMb: peakMb(daemon.pid), tookMs: performance.now() - from });
    await pause(50);
  }
}

function rowsOf(
  scan: HistoryScan,
  {
    data,
    answers,
    peakMb: mb,
    tookMs,
  }: { data: HistoryData; answers: number[]; peakMb: number; tookMs: number },
): Row[] {
  const files = `${scan.files} files, ${(data.bytes / 1e9).toFixed(2)} GB${IS_FULL ? "" : "; BENCH_HISTORY_FULL=1 makes 2 GB"}`;
  const listedMs = (scan.listedAt ?? 0) - (scan.startedAt ?? 0);
  const note = `${answers.length} times`;
  return [
    {
      what: "first listing of agents' sessions on disk",
      value: listedMs / 1000,
      unit: "s",
      goal: atMost(3),
      note: files,
    },
    { what: "import", value: data.bytes / 1e3 / tookMs, unit: "MB per s", goal: atLeast(60), note: files },
    {
      what: "peak memory of an import",
      value: mb,
      unit: "MB",
      goal: atMost(400),
      note: "of the daemon, with its threads",
    },
    { what: "health while importing, p99", value: percentile(answers, 99), unit: "ms", note },
  ];
}

/**
 * Measures the time until all imported text can be found. Imports do not wait for the index, so this repeats
 * a search until it reports that the index is complete.
 */
async function indexed(client: Client): Promise<Row> {
  const answers: number[] = [];
  const from = performance.now();
  for (;;) {
    answers.push(await timeMs(() => client.health({})));
    if ((await client.search({ query: "nowhere" })).isWhole) break;
    await pause(50);
  }
  return {
    what: "until search finds all of it",
    value: (performance.now() - from) / 1000,
    unit: "s",
    note: `after the import; health meanwhile, p99: ${percentile(answers, 99).toFixed(1)} ms`,
  };
}

async function opened(client: Client, data: HistoryData): Promise<Row[]> {
  const { projects } = await client.projects({});
  const projectId = projects[0]?.id ?? "";
  const open = async (sessionId: string): Promise<number> => {
    const taken: number[] = [];
    for (let i = 0; i < OPENINGS; i += 1) {
      taken.push(await timeMs(() => client.projectSession({ projectId, sessionId })));
    }
    return median(taken);
  };
  const page = `the last 100 entries, over HTTP, median of ${OPENINGS}`;
  return [
    {
      what: "last page of a transcript of 200 MB",
      value: await open(data.longId),
      unit: "ms",
      goal: atMost(150),
      note: page,
    },
    {
      what: "a session of 10,000 lines with 50 sub-agents opens",
      value: await open(data.linesId),
      unit: "ms",
      goal: atMost(300),
      note: page,
    },
  ];
}

async function keepingUp(client: Client, data: HistoryData): Promise<Row[]> {
  const scans: number[] = [];
  for (let i = 0; i < 5; i += 1) scans.push(await timeMs(() => scanned(client)));
  return [
    {
      what: "a scan with nothing changed",
      value: median(scans) / 1000,
      unit: "s",
      goal: atMost(1),
      note: "median of 5",
    },
    {
      what: "a live sub-agent's entry, from the file to the feed",
      value: median(await liveTimes(client, data)),
      unit: "ms",
      goal: atMost(1_000),
      note: `median of ${LIVE_ROWS}`,
    },
  ];
}

async function scanned(client: Client): Promise<void> {
  await client.import({});
  while ((await client.imported({})).scan.phase !== "watching") await pause(5);
}

async function liveTimes(client: Client, data: HistoryData): Promise<number[]> {
  const ending = new AbortController();
  const taken: number[] = [];
  let writtenAt = 0;
  const write = (): void => {
    writtenAt = performance.now();
    appendFileSync(data.liveFile, data.liveRow(taken.length));
  };
  for await (const item of client.events({ signal: ending.signal })) {
    if (item.type === "open") write();
    if (item.type !== "event" || item.event.type !== "entry.appended") continue;
    taken.push(performance.now() - writtenAt);
    if (taken.length === LIVE_ROWS) break;
    write();
  }
  ending.abort();
  return taken;
}

function peakMb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}
