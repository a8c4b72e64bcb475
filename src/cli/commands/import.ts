import { setTimeout as pause } from "node:timers/promises";
import type { HistoryProblem, HistoryScan } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { failed, type Failure } from "../failure.ts";
import { inlineBlock } from "../terminal/screen.ts";
import { clip, cleanLine } from "../terminal/text.ts";
import { bytes, count, duration } from "../../text/quantity.ts";

const ASK_MS = 150;
const PROBLEMS_SHOWN = 5;
const BAR_MAX = 40;

export async function run(call: Call): Promise<number> {
  const { client } = await openConnection(call, { start: true });
  const exclude = call.flags.text("exclude");
  const globs = exclude?.split(",").map((each) => each.trim());
  await client.import(globs === undefined ? {} : { exclude: globs.filter((each) => each !== "") });
  const leave = (): void => {
    call.io.note("\nThe daemon continues in the background. See its progress: kinfold import");
    process.exit(130);
  };
  process.once("SIGINT", leave);
  const scan = await follow(client, call);
  process.off("SIGINT", leave);
  const { problems } = await client.imported({ problems: 1000 });
  if (call.io.json) call.io.answer({ scan, problems });
  else call.io.lines(summary(scan, problems, call));
  return scan.phase === "failed" ? 1 : 0;
}

/** Polls until everything is read; draws a progress bar on a terminal. */
async function follow(client: Client, call: Call): Promise<HistoryScan> {
  const block = call.io.tty ? inlineBlock(call.io.stdout) : null;
  try {
    for (;;) {
      const { scan } = await client.imported({});
      block?.draw(progressLines(scan, call));
      if (scan.phase === "failed" || scan.error !== null) throw unread(scan);
      if (scan.phase === "watching") {
        block?.draw([]);
        return scan;
      }
      await pause(ASK_MS);
    }
  } finally {
    block?.end();
  }
}

function unread(scan: HistoryScan): Failure {
  return failed(
    "import_failed",
    `Reading stopped: ${cleanLine(scan.error ?? "the thread that reads has failed")}`,
    ["The daemon retries by itself. Its log: kinfold logs", "Check this machine: kinfold doctor"],
  );
}

function progressLines(scan: HistoryScan, call: Call): string[] {
  const { columns, paint } = call.io;
  if (scan.phase === "starting" || scan.phase === "listing") {
    const found = scan.files === 0 ? "" : ` ${count(scan.files, "session")} so far`;
    return [clip(`Looking for sessions of agents on disk …${found}`, columns())];
  }
  const done = scan.bytes === 0 ? 1 : scan.bytesRead / scan.bytes;
  const width = Math.max(10, Math.min(BAR_MAX, columns() - 50));
  const filled = Math.round(done * width);
  const bar = `${paint("green", "█".repeat(filled))}${paint("soft", "░".repeat(width - filled))}`;
  const part = `${bytes(scan.bytesRead)} of ${bytes(scan.bytes)}, ${scan.filesRead} of ${count(scan.files, "file")}`;
  return [`${bar} ${Math.floor(done * 100)} %  ${paint("soft", part)}`];
}

function summary(scan: HistoryScan, problems: readonly HistoryProblem[], call: Call): string[] {
  const { paint } = call.io;
  const lines: string[] = [];
  for (const { agent, sessions, subagents, states } of scan.found) {
    const below = subagents === 0 ? "" : ` with ${count(subagents, "sub-agent")}`;
    const counts = Object.entries(states).toSorted(([, a], [, b]) => b - a);
    const words = counts.map(([state, number]) => `${number} ${state}`).join(", ");
    lines.push(`${paint("bold", cleanLine(agent))}  ${count(sessions, "session")}${below}: ${words}`);
  }
  if (scan.found.length === 0) lines.push("No sessions of agents were found on this disk.");
  if (scan.exclude.length > 0) {
    const folders = scan.exclude.map((each) => cleanLine(each)).join(", ");
    const what = `${count(scan.excluded, "file")} excluded, as you asked: ${folders}`;
    lines.push(paint("soft", `${what}. Include them again: kinfold import --exclude ''`));
  }
  if (problems.length > 0) {
    lines.push("", `${count(problems.length, "file")} could not be read, or only in part:`);
    for (const { path, reason } of problems.slice(0, PROBLEMS_SHOWN))
      lines.push(`  ${cleanLine(path)}: ${cleanLine(reason)}`);
    if (problems.length > PROBLEMS_SHOWN) lines.push("  All of them: kinfold doctor");
  }
  const tookMs = (scan.readAt ?? 0) - (scan.startedAt ?? 0);
  const took = tookMs > 0 ? ` in ${duration(tookMs)}` : "";
  lines.push(
    "",
    paint("soft", `${bytes(scan.bytes)} read${took}. From now on the daemon imports new work by itself.`),
  );
  lines.push(paint("soft", "List them: kinfold ls --all   Search them: kinfold search …"));
  return lines;
}
