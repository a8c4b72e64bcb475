import { fileSize } from "../../system/file-size.ts";
import { createReadStream, existsSync, watch } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Call } from "../call.ts";
import { failed } from "../failure.ts";
import { homeOf } from "../daemon/home.ts";
import type { Colour } from "../terminal/paint.ts";
import { harmless } from "../terminal/text.ts";

export async function run(call: Call): Promise<void> {
  const { daemonLog } = homeOf(call);
  if (!existsSync(daemonLog)) {
    throw failed("no_log", `There is no log yet at ${daemonLog}.`, [
      "It is created when the daemon starts: kinfold up",
    ]);
  }
  const wanted = call.flags.number("lines") ?? 50;
  const { lines, end } = await lastLines(daemonLog, wanted);
  for (const line of lines) call.io.line(readable(line, call));
  if (call.flags.on("follow")) await follow(daemonLog, end, (line) => call.io.line(readable(line, call)));
}

/** Reads from the end, and only as much as it needs, because a log may be large. */
async function lastLines(path: string, wanted: number): Promise<{ lines: string[]; end: number }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    let from = size;
    let text = Buffer.alloc(0);
    while (from > 0 && text.filter((byte) => byte === NEWLINE).length <= wanted) {
      const length = Math.min(BLOCK, from);
      from -= length;
      const block = Buffer.alloc(length);
      await file.read(block, 0, length, from);
      text = Buffer.concat([block, text]);
    }
    const lines = text.toString("utf8").split("\n").slice(0, -1);
    return { lines: wanted === 0 ? [] : lines.slice(-wanted), end: size };
  } finally {
    await file.close();
  }
}

/** Follows the log until Ctrl-C; never resolves. Reads a truncated log again from its start. */
async function follow(path: string, from: number, onLine: (line: string) => void): Promise<never> {
  let position = from;
  let isReading = false;
  const read = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    const size = fileSize(path);
    if (size < position) position = 0;
    if (size > position) {
      const input = createReadStream(path, { start: position, end: size - 1 });
      for await (const line of createInterface({ input })) onLine(line);
      position = size;
    }
    isReading = false;
  };
  watch(path, () => void read());
  setInterval(() => void read(), 500);
  return await new Promise<never>(() => {});
}

/** Formats a pino record as `14:02:07 warn  text  key=value`; returns other lines unchanged. */
function readable(line: string, call: Call): string {
  if (call.io.json) return line;
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return harmless(line);
  }
  if (typeof record !== "object" || record === null) return harmless(line);
  const { level, time, msg, ...rest } = record;
  const [word, colour] = LEVELS[Number(level)] ?? [String(level ?? ""), null];
  const at = time === undefined ? "" : new Date(time as string | number).toTimeString().slice(0, 8);
  const facts = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const { paint } = call.io;
  return (
    harmless(`${at} `) +
    paint(colour, word.padEnd(6)) +
    harmless(String(msg ?? "")) +
    paint("soft", facts.length > 0 ? harmless(`  ${facts.join(" ")}`) : "")
  );
}

const LEVELS: Record<number, readonly [string, Colour | null]> = {
  10: ["trace", "soft"],
  20: ["debug", "soft"],
  30: ["info", null],
  40: ["warn", "amber"],
  50: ["error", "red"],
  60: ["fatal", "red"],
};
const NEWLINE = 10;
const BLOCK = 65_536;
