import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/** What a running daemon leaves in its home so that the CLI finds it. Evidence, not proof: ask the address. */
export interface DaemonFile {
  readonly pid: number;
  readonly url: string;
  readonly startedAt: number;
  readonly boot: string;
  /** Which life of the pid it is (`processStart`); null where the system does not say. */
  readonly processStart: string | null;
  /** What the daemon waits for before it can start, as a sentence. Absent once it has started. */
  readonly waiting?: string;
}

/** Null when there is none, or when what is there was not written by a daemon. */
export function readDaemonFile(path: string): DaemonFile | null {
  let data: Partial<DaemonFile> | null;
  try {
    data = JSON.parse(readFileSync(path, "utf8")) as Partial<DaemonFile> | null;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const { pid, url, startedAt, boot, processStart, waiting } = data ?? {};
  if (typeof pid !== "number" || typeof url !== "string") return null;
  if (typeof startedAt !== "number" || typeof boot !== "string") return null;
  return {
    pid,
    url,
    startedAt,
    boot,
    processStart: typeof processStart === "string" ? processStart : null,
    ...(typeof waiting === "string" ? { waiting } : {}),
  };
}

/** Replaces the file in one step: a reader sees the old one or the new one. */
export function writeDaemonFile(path: string, daemon: DaemonFile): void {
  const next = `${path}.${daemon.pid}.tmp`;
  writeFileSync(next, `${JSON.stringify(daemon, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, path);
}

/** Removes the file only if it is still this daemon's own. */
export function removeDaemonFile(path: string, boot: string): void {
  if (readDaemonFile(path)?.boot === boot) rmSync(path, { force: true });
}
