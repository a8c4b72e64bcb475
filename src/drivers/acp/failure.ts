import type { AgentExit, OpenFailure } from "../port.ts";
import { isFields } from "./update/tool-call.ts";
import { shortLine } from "../../text/fence.ts";

/** Returns one line for a person from any error that an agent or the SDK threw. */
export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const data = isFields(error) ? error["data"] : null;
  const details = isFields(data) ? (data["details"] ?? data["message"]) : data;
  const text = typeof details === "string" && !message.includes(details) ? `${message}: ${details}` : message;
  return shortLine(text, ERROR_LENGTH);
}

/** Returns the provider's HTTP status, which Gemini sends as the code of its own error. */
export function httpStatus(error: unknown): number | null {
  const code = isFields(error) ? error["code"] : null;
  return typeof code === "number" && code >= 400 && code < 600 ? code : null;
}

export function describeExit(exit: AgentExit): string {
  const how = exit.signal === null ? `with code ${exit.code}` : `by ${exit.signal}`;
  const last = exit.stderrTail.split("\n").at(-1) ?? "";
  return shortLine(last === "" ? `the agent exited ${how}` : `the agent exited ${how}: ${last}`, LINE_LENGTH);
}

export function openFailure(error: unknown, otherwise: OpenFailure): OpenFailure {
  return isFields(error) && error["code"] === AUTH_REQUIRED ? "not_signed_in" : otherwise;
}

/** Whether the promise settles within `ms`. Time in which the machine sleeps does not count. */
export async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const limit = Promise.withResolvers<boolean>();
  const beatMs = Math.max(1, Math.min(BEAT_MS, ms));
  let leftMs = ms;
  const timer = setInterval(() => {
    leftMs -= beatMs;
    if (leftMs <= 0) limit.resolve(false);
  }, beatMs);
  const settled = promise.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([settled, limit.promise]);
  clearInterval(timer);
  return inTime;
}

const BEAT_MS = 250;
const AUTH_REQUIRED = -32000;
const LINE_LENGTH = 500;
/** Long enough for a provider's whole JSON error, which contains the message. */
const ERROR_LENGTH = 4_000;
