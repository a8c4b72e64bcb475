import { redact } from "../../secrets/redact.ts";
import type { AgentUpdate } from "../../drivers/port.ts";
import { oneLine } from "../../text/fence.ts";

/** What an update shows its agent to be doing, as evidence; null where it shows nothing. */
export function activityOf(update: AgentUpdate): string | null {
  switch (update.kind) {
    case "fragment":
      return update.what === "thought" ? "thinking" : "writing";
    case "thought":
      return "thinking";
    case "text":
      return "writing";
    case "toolCall":
      return oneLine(redact((update.command ?? update.title).slice(0, DOING_CHARS_MAX)), 80);
    default:
      return null;
  }
}

const DOING_CHARS_MAX = 2_000;
