import type { Ending, SessionFacts } from "../../facts.ts";
import { asObject, asText } from "../../lines/value.ts";
import { completedAt, createdAt, errorOf } from "./entries.ts";
import type { Message } from "./source.ts";
import { shortLine } from "../../../text/fence.ts";

const ERROR_MAX = 500;

export function prompted(facts: SessionFacts, at: number | null): void {
  set(facts, { kind: "prompted", how: "its last row is a prompt without an answer", at });
}

export function answered(facts: SessionFacts, message: Message): void {
  const at = completedAt(message) ?? (createdAt(message) || null);
  const error = errorOf(message);
  const isDone = completedAt(message) !== null;
  const reason = finishOf(message);
  const open = openCall(message);
  if (error?.name === "MessageAbortedError") {
    set(facts, { kind: "interrupted", how: "its last answer was aborted", at, confirmed: true });
  } else if (error !== null) {
    const text = shortLine(error.text, ERROR_MAX);
    set(facts, {
      kind: "failed",
      how: `its last answer ended with ${shortLine(error.name, 60)}`,
      at,
      error: text,
      confirmed: true,
    });
  } else if (open !== null) {
    set(facts, { kind: "working", how: `its call of ${shortLine(open, 60)} has no result`, at });
  } else if (!isDone) {
    set(facts, { kind: "working", how: "its last answer is not finished", at });
  } else if (reason === "tool-calls" || (reason === null && endsWithCall(message))) {
    resulted(facts, message, at);
  } else if (reason === "error") {
    set(facts, { kind: "failed", how: "its last answer ended with an error", at, error: "the model failed" });
  } else {
    const how =
      reason === null ? "its last answer is finished" : `its last answer ended with ${shortLine(reason, 40)}`;
    set(facts, { kind: "ended", how, at, confirmed: reason !== null });
  }
}

function resulted(facts: SessionFacts, message: Message, at: number | null): void {
  const last = message.parts.findLast(({ data }) => data["type"] === "tool");
  const state = asObject(last?.data["state"]);
  if (state?.["status"] === "error") {
    const error = shortLine(asText(state["error"]) ?? "the call failed", ERROR_MAX);
    set(facts, { kind: "toolError", how: "its last row is a failed call", at, error });
  } else {
    set(facts, { kind: "working", how: "its last row is a tool result without an answer", at });
  }
}

/** Older versions write the finish reason only into the last part. */
function finishOf({ data, parts }: Message): string | null {
  const step = parts.findLast((part) => part.data["type"] === "step-finish");
  return asText(data["finish"]) ?? asText(step?.data["reason"]);
}

function openCall({ parts }: Message): string | null {
  for (const { data } of parts) {
    const status = data["type"] === "tool" ? asObject(data["state"])?.["status"] : null;
    if (status === "running" || status === "pending") return asText(data["tool"]) ?? "a tool";
  }
  return null;
}

function endsWithCall({ parts }: Message): boolean {
  const said = parts.filter(({ data }) => data["type"] === "text" || data["type"] === "tool");
  return said.at(-1)?.data["type"] === "tool";
}

function set(facts: SessionFacts, ending: Pick<Ending, "kind" | "how" | "at"> & Partial<Ending>): void {
  facts.ending = { confirmed: false, error: null, ...ending };
}
