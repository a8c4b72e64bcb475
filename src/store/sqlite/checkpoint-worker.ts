import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

const db = new DatabaseSync((workerData as { path: string }).path, { timeout: 0 });

/** Copies the log back into the file, away from the event loop. TRUNCATE last, when little is left to copy. */
parentPort?.on("message", (mode: "passive" | "truncate" | "close") => {
  if (mode === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  try {
    db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    if (mode === "truncate") db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    parentPort?.postMessage({ error: null });
  } catch (error) {
    parentPort?.postMessage({ error: String(error) });
  }
});
