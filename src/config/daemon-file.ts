import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * The file that a running daemon keeps in its home. The CLI reads the daemon's address from it, but must
 * check who answers there.
 */
export interface DaemonFile {
  readonly pid: number;
  readonly url: string;
  readonly startedAt: number;
  readonly boot: string;
  /**
   * When the process started, which distinguishes it from another process with the same pid; null if the
   * system does not report it.
   */
  readonly processStart: string | null;
  /** Why the daemon cannot start yet, as a sentence; absent once it has started. */
  readonly waiting?: string;
}

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

export function writeDaemonFile(path: string, daemon: DaemonFile): void {
  const next = `${path}.${daemon.pid}.tmp`;
  writeFileSync(next, `${JSON.stringify(daemon, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, path);
}

/** Removes the file only if this boot of the daemon wrote it. */
export function removeDaemonFile(path: string, boot: string): void {
  if (readDaemonFile(path)?.boot === boot) rmSync(path, { force: true });
}
