import type { SessionFacts } from "../../facts.ts";
import { ERROR_MAX, failedCall, hasOpenCall, PROMPTED, RESULTED, setEnding } from "../../lines/ending.ts";
import { asObject, asText } from "../../lines/value.ts";
import { completedAt, createdAt, errorOf } from "./entries.ts";
import type { Message } from "./source.ts";
import { shortLine } from "../../../text/fence.ts";

export function prompted(facts: SessionFacts, at: number | null): void {
  setEnding({ facts }, { ...PROMPTED, at });
}

export function answered(facts: SessionFacts, message: Message): void {
  const at = completedAt(message) ?? (createdAt(message) || null);
  const error = errorOf(message);
  const isDone = completedAt(message) !== null;
  const reason = finishOf(message);
  const open = openCall(message);
  if (error?.name === "MessageAbortedError") {
    setEnding({ facts }, { kind: "interrupted", how: "its last answer was aborted", at, confirmed: true });
  } else if (error !== null) {
    const how = `its last answer ended with ${shortLine(error.name, 60)}`;
    setEnding(
      { facts },
      { kind: "failed", how, at, error: shortLine(error.text, ERROR_MAX), confirmed: true },
    );
  } else if (open !== null) {
    setEnding({ facts }, { ...hasOpenCall(open), at });
  } else if (!isDone) {
    setEnding({ facts }, { kind: "working", how: "its last answer is not finished", at });
  } else if (reason === "tool-calls" || (reason === null && endsWithCall(message))) {
    resulted(facts, message, at);
  } else if (reason === "error") {
    setEnding(
      { facts },
      { kind: "failed", how: "its last answer ended with an error", at, error: "the model failed" },
    );
  } else {
    const how =
      reason === null ? "its last answer is finished" : `its last answer ended with ${shortLine(reason, 40)}`;
    setEnding({ facts }, { kind: "ended", how, at, confirmed: reason !== null });
  }
}

function resulted(facts: SessionFacts, message: Message, at: number | null): void {
  const last = message.parts.findLast(({ data }) => data["type"] === "tool");
  const state = asObject(last?.data["state"]);
  if (state?.["status"] === "error") {
    setEnding({ facts }, { ...failedCall(asText(state["error"])), at });
  } else {
    setEnding({ facts }, { ...RESULTED, at });
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
