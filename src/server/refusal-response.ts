import { Refusal } from "../contract/refusal.ts";
import type { Log } from "../log.ts";

/** Sent with every response: forbids caching, sniffing and framing, and sends no referrer to other sites. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

export function refusalBody({ code, message, details }: Refusal): {
  error: Pick<Refusal, "code" | "message" | "details">;
} {
  return { error: { code, message, details } };
}

export function refusalHeaders(refusal: Refusal): Record<string, string> {
  if (refusal.code === "unauthorized") return { "www-authenticate": 'Bearer realm="kinfold"' };
  // The rest of an oversized body is never read, so the connection cannot be reused.
  if (refusal.code === "body_too_large") return { connection: "close" };
  const { retryAfterMs } = refusal.details;
  if (refusal.code === "busy" && typeof retryAfterMs === "number")
    return { "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
  return {};
}

/** Turns an error into a refusal. A bug is logged in full; its details are not shown to the caller. */
export function refusalOf(error: unknown, log: Log): Refusal {
  if (error instanceof Refusal) return error;
  log.error({ err: error }, "request failed with an internal error");
  return new Refusal("internal", "Kinfold failed with an internal error; the daemon's log has the details.");
}
