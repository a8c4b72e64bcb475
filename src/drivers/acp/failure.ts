import type { AgentExit } from "../port.ts";
import { fieldsOf, isFields } from "../../text/fields.ts";
import { shortLine } from "../../text/fence.ts";

/** Returns one line for a person from any error that an agent or the SDK threw. */
export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const { data } = fieldsOf(error);
  const details = isFields(data) ? (data["details"] ?? data["message"]) : data;
  const text = typeof details === "string" && !message.includes(details) ? `${message}: ${details}` : message;
  return shortLine(text, ERROR_LENGTH);
}

/** Returns the provider's HTTP status, which Gemini sends as the code of its own error. */
export function httpStatus(error: unknown): number | null {
  const { code } = fieldsOf(error);
  return typeof code === "number" && code >= 400 && code < 600 ? code : null;
}

/**
 * Whether an agent's error to a load says that it has no such session. The protocol's code for this is
 * "resource not found"; some agents say it only in words.
 */
export function reportsNoSession(error: unknown): boolean {
  return fieldsOf(error)["code"] === RESOURCE_NOT_FOUND || NO_SESSION.test(describeError(error));
}

const RESOURCE_NOT_FOUND = -32002;
const NO_SESSION = new RegExp(
  [
    /\b(?:session|conversation|thread|resource)\b.{0,80}\b(?:not found|does not exist|doesn't exist)\b/,
    /\b(?:no such|unknown) (?:session|conversation|thread)\b/,
    /\bno (?:session|conversation|thread|rollout) (?:was )?(?:found|exists)\b/,
    /\binvalid session (?:id|identifier)\b/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "i",
);

export function describeExit(exit: AgentExit): string {
  const how = exit.signal === null ? `with code ${exit.code}` : `by ${exit.signal}`;
  const last = exit.stderrTail.split("\n").at(-1) ?? "";
  return shortLine(last === "" ? `the agent exited ${how}` : `the agent exited ${how}: ${last}`, LINE_LENGTH);
}

const LINE_LENGTH = 500;
/** Long enough for the whole JSON error of a provider. The error's message is inside that JSON. */
const ERROR_LENGTH = 4_000;
