import { appendFileSync, existsSync, readFileSync } from "node:fs";

/**
 * A stretch is the work of the main thread between two ticks. Stretches shorter than this are not recorded.
 */
const NOTED_MS = 10;
const TICK_MS = 5;
/** How often the yardstick is repeated, because the system counts processor time in steps of milliseconds. */
const YARD_TIMES = 600;
/** Processor time of the yardstick on two idle cores. */
const YARD_MS = 110;

/**
 * Records every long stretch of this process's main thread, during which it answered no request. Measures
 * processor time, because on a busy machine the wall clock includes other processes. The same work also costs
 * more processor time there, so `SIGUSR2` makes this process measure a yardstick.
 */
export function noteStretches(file: string): void {
  let before = process.threadCpuUsage();
  const sinceBefore = (): number => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  const note = (what: "stretch" | "yard", ms: number): void =>
    appendFileSync(file, `${Date.now()} ${what} ${ms}\n`);
  const tick = (): void => {
    const ms = sinceBefore();
    if (ms >= NOTED_MS) note("stretch", ms);
  };
  setInterval(tick, TICK_MS).unref();
  process.on("SIGUSR2", () => {
    tick();
    for (let left = YARD_TIMES; left > 0; left -= 1) work();
    note("yard", sinceBefore());
  });
}

const TEXT = "The parser loses the marmalade when a line is empty: token=abc123.\n".repeat(1_000);

/** A fixed piece of work, of the kind that the daemon does with long messages. */
function work(): void {
  const words = JSON.parse(JSON.stringify(TEXT.split("\n"))) as string[];
  const found = words.filter((line) => /\b(?:token|password)=\w+/i.test(line));
  // Uses the result, so that the work is not optimised away.
  if (found.length === 1) throw new Error("unreachable");
}

/** Returns the longest stretch recorded after the time `since`, in milliseconds; 0 if there is none. */
export function longestStretch(file: string, since: number): number {
  return Math.max(0, ...rowsOf(file, "stretch").flatMap(({ at, ms }) => (at >= since ? [ms] : [])));
}

/**
 * Returns how many times as long as on two idle cores the yardstick took, for each time it was measured; at
 * least 1.
 */
export function slownessesIn(file: string): number[] {
  return rowsOf(file, "yard").map(({ ms }) => Math.max(1, ms / YARD_MS));
}

function rowsOf(file: string, what: string): { at: number; ms: number }[] {
  if (!existsSync(file)) return [];
  const rows = readFileSync(file, "utf8").split("\n");
  return rows.flatMap((row) => {
    const [at, kind, ms] = row.split(" ");
    return kind === what ? [{ at: Number(at), ms: Number(ms) }] : [];
  });
}
