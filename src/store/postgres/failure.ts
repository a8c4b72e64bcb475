import { errorCode } from "../../system/error.ts";
import { Refusal } from "../../contract/refusal.ts";

/** How to handle an error: retry the whole write, reconnect and retry, or pass the error to the caller. */
type Remedy = "retry" | "reconnect" | "reject";

/** The server closed the connection because a transaction was idle for too long. */
export const IDLE_IN_TRANSACTION = "25P03";

const RETRY = new Set([
  IDLE_IN_TRANSACTION,
  "40001", // serialization_failure
  "40P01", // deadlock_detected
  "23505", // unique_violation: another tree took the key a moment ago; now it will be found
]);
const GONE = new Set([
  "57P01",
  "57P02",
  "57P03",
  "53300",
  "ECONNRESET",
  "ECONNREFUSED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
]);

export function remedyFor(error: unknown): Remedy {
  if (RETRY.has(errorCode(error))) return "retry";
  return isConnectionLoss(error) ? "reconnect" : "reject";
}

export function isConnectionLoss(error: unknown): boolean {
  const code = errorCode(error);
  if (GONE.has(code) || code.startsWith("08")) return true;
  // These errors of the driver have no code, so they are recognized by their message.
  return (
    error instanceof Error &&
    /^(Connection terminated|timeout e|Query read timeout|Client )/.test(error.message)
  );
}

/** Turns a server failure into a refusal; returns any other error unchanged. */
export function translated(error: unknown): unknown {
  const code = errorCode(error);
  if (code === "53100") {
    return new Refusal(
      "disk_full",
      "The disk of the PostgreSQL server is full; nothing was changed. Free some space and try again.",
    );
  }
  if (code === "55P03" || code === "57014" || code === "53200") {
    return new Refusal(
      "store_busy",
      "PostgreSQL could not take the write in time; nothing was changed. Try again.",
    );
  }
  if (isConnectionLoss(error)) {
    return new Refusal(
      "store_busy",
      "PostgreSQL does not answer; nothing was changed. Try again in a moment.",
    );
  }
  return error;
}
