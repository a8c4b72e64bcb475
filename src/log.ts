import { mkdirSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import { redact } from "./secrets/redact.ts";
import { redactNamed } from "./secrets/redact-deep.ts";

/** The daemon's log. Daemon code writes to this log and never uses `console`. */
export interface Log {
  debug(data: object, text: string): void;
  info(data: object, text: string): void;
  warn(data: object, text: string): void;
  error(data: object, text: string): void;
}

const LEVELS = { debug: 20, info: 30, warn: 40, error: 50 } as const;
type Level = keyof typeof LEVELS;

/** The most attempts to write a line. An attempt fails while the pipe is full. */
const TRIES = 20;
/** Pause after an attempt that found the pipe full. */
const TRY_MS = 5;

/** Opens a log that writes one line of JSON per call, synchronously, to the path or else to stderr. */
export function openLog(options: { level: Level; path: string | null }): Log {
  const file = options.path === null ? 2 : openFile(options.path);
  let lost = 0;
  const at =
    (level: Level) =>
    (data: object, text: string): void => {
      if (LEVELS[level] < LEVELS[options.level]) return;
      const missing = lost === 0 ? {} : { linesLost: lost };
      const record = { level: LEVELS[level], time: new Date().toISOString(), ...data, ...missing, msg: text };
      lost = writeWhole(file, Buffer.from(`${json(record)}\n`)) ? 0 : lost + 1;
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

function openFile(file: string): number {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  return openSync(file, "a", 0o600);
}

/** Returns false if the line could not be written. Never throws, so a full disk does not end the daemon. */
function writeWhole(file: number, line: Buffer): boolean {
  let written = 0;
  for (let left = TRIES; left > 0 && written < line.length; left--) {
    try {
      written += writeSync(file, line, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return false;
      Atomics.wait(PAUSE, 0, 0, TRY_MS);
    }
  }
  return written === line.length;
}

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

interface Said {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
}

/** Never throws: if a record cannot be serialised, its message is written without the other data. */
function json(said: Said): string {
  try {
    return JSON.stringify(said, (key, value: unknown) => shown(key, value));
  } catch (error) {
    const { level, time, msg } = said;
    return JSON.stringify({ level, time, unreadable: String(error), msg: redact(msg) });
  }
}

/** Redacts secrets. A string may be a secret because of its content or because of its name, `key`. */
function shown(key: string, value: unknown): unknown {
  if (typeof value === "string") return redactNamed(key, value);
  if (typeof value === "bigint") return value.toString();
  if (!(value instanceof Error)) return value;
  const { name, message, stack, cause, ...more } = value;
  return { type: name, message, stack, ...(cause === undefined ? {} : { cause }), ...more };
}
