import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { Refusal, type RefusalCode } from "../../../contract/refusal.ts";
import type { EntrySearch } from "../../port/store.ts";
import { searchEntries } from "../../search/search.ts";
import { sql } from "../../sql.ts";
import { Connection } from "../connection.ts";
import { hasWorked } from "../own-work.ts";
import { sqliteSource } from "./source.ts";

export type Ask = { readonly search: EntrySearch; readonly ms: number } | "close";

export type Reply =
  | "ready"
  /** JSON, because copying an object between threads takes several times as long. */
  | { readonly found: string }
  | { readonly refusal: { readonly code: RefusalCode; readonly message: string } }
  | { readonly error: string };

const CACHE_KB = 8_000;
const BUSY_MS = 200;
const NICE = 5;

letOthersGoFirst();

const connection = new Connection((workerData as { path: string }).path, {
  readOnly: true,
  cacheKb: CACHE_KB,
  busyMs: BUSY_MS,
});

/** Runs one search at a time, each on one snapshot of the data, off the event loop. */
parentPort?.on("message", (ask: Ask) => {
  if (ask === "close") {
    connection.db.close();
    parentPort?.close();
    return;
  }
  void answer(ask).then((reply) => parentPort?.postMessage(reply));
});
parentPort?.postMessage("ready" satisfies Reply);

async function answer({ search, ms }: Exclude<Ask, "close">): Promise<Reply> {
  try {
    await connection.run(sql`BEGIN`);
    const found = await searchEntries(sqliteSource(connection, search, hasWorked(ms)), search);
    return { found: JSON.stringify(found) };
  } catch (error) {
    if (error instanceof Refusal) return { refusal: { code: error.code, message: error.message } };
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  } finally {
    if (connection.db.isTransaction) connection.db.exec("ROLLBACK");
  }
}

/** Lowers this thread's priority. Only on Linux: elsewhere it would change the whole process. */
function letOthersGoFirst(): boolean {
  if (process.platform !== "linux") return false;
  try {
    setPriority(NICE);
    return true;
  } catch {
    // If this is not permitted, searches simply run at normal priority.
    return false;
  }
}
