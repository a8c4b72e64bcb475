import { Refusal } from "../contract/refusal.ts";
import type { EngineDeps } from "./deps.ts";

const RETRY_MS = 1_000;

/**
 * Retries a write while the store fails temporarily, for example on a full disk, so that no outcome is lost.
 * Rejects with the last error when the error is permanent or `isWanted` returns false.
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
      deps.log.error({ err: error }, "store write failed; retrying");
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof Refusal && (error.code === "disk_full" || error.code === "store_busy");
}
