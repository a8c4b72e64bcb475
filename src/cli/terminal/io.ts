import type { Io } from "../call.ts";
import { paintFor } from "./paint.ts";

export function processIo(options: { json: boolean; env: NodeJS.ProcessEnv }): Io {
  const { stdout, stderr, stdin } = process;
  const { json, env } = options;
  const paint = paintFor(stdout, env);
  const line = (text = ""): void => void stdout.write(`${text}\n`);
  return {
    json,
    tty: stdout.isTTY === true && !json && env["TERM"] !== "dumb",
    columns: () => widthOf(stdout, env),
    rows: () => stdout.rows ?? 24,
    paint,
    stdin,
    stdout,
    tick: paint("green", "✓"),
    line,
    lines: (texts) => texts.forEach((text) => line(text)),
    note: (text) => void stderr.write(`${text}\n`),
    answer: (value, text) => line(json || text === undefined ? JSON.stringify(value, null, 2) : text),
  };
}

/** Exits without an error when the reader closes our output early, as in `kinfold ls | head`. */
export function endQuietlyOnBrokenPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      process.exit(error.code === "EPIPE" ? 0 : 1);
    });
  }
}

/** Waits until everything is written: writes to a pipe are not done when `write` returns. */
export async function flushed(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.writableLength > 0) await new Promise<void>((done) => stream.write("", () => done()));
  }
}

function widthOf(stdout: NodeJS.WriteStream, env: NodeJS.ProcessEnv): number {
  const asked = Number(env["COLUMNS"]);
  if (stdout.columns) return stdout.columns;
  return Number.isInteger(asked) && asked > 20 ? asked : 120;
}
