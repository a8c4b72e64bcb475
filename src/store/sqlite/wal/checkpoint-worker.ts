import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

export type Mode = "passive" | "truncate" | "close";

export interface Answer {
  readonly mode: Mode;
  readonly error: string | null;
}

/** How long a checkpoint waits for readers. The reads of the main thread are always short. */
const BUSY_MS = 1_000;

const db = new DatabaseSync((workerData as { path: string }).path, { timeout: BUSY_MS });

/** Checkpoints the write-ahead log into the database file, off the event loop. */
parentPort?.on("message", (mode: Mode) => {
  if (mode === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage({ mode, error: walCheckpoint(mode) } satisfies Answer);
});

function walCheckpoint(mode: "passive" | "truncate"): string | null {
  try {
    db.exec(`PRAGMA wal_checkpoint(${mode.toUpperCase()})`);
    return null;
  } catch (error) {
    return String(error);
  }
}
