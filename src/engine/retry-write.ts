import { Refusal } from "../contract/refusal.ts";
import type { EngineDeps } from "./deps.ts";

const RETRY_MS = 1_000;

/**
 * A full disk or a busy store costs time, never an outcome. It goes on until it is written or
 * nobody wants it any more; then it rejects with what stood against it.
 */
export async function retryWrite<T>(
  deps: EngineDeps,
  write: () => Promise<T>,
  isWanted: () => boolean = () => true,
): Promise<T> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isPassing(error) || !isWanted()) throw error;
      deps.log.error({ err: error }, "the store did not take a write; trying again");
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof Refusal && (error.code === "disk_full" || error.code === "store_busy");
}
