import { pino } from "pino";

/** What daemon code may say. Never `console`: the log is a file that a person reads later. */
export interface Log {
  debug(data: object, text: string): void;
  info(data: object, text: string): void;
  warn(data: object, text: string): void;
  error(data: object, text: string): void;
}

export function openLog(options: { level: string; path: string | null }): Log {
  const destination = pino.destination({ dest: options.path ?? 2, sync: true, mkdir: true });
  return pino({ level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
