import type { JsonObject, Row } from "../../lines/json-lines.ts";
import { timeOf } from "../../lines/text.ts";
import { asObject, asText } from "../../lines/value.ts";
import { ownerOf } from "./copied.ts";
import { addEntry, noticed, refOf, type Taken } from "./entries.ts";
import { takeEvent } from "./events.ts";
import { takeItem } from "./items.ts";
import { takeMeta } from "./meta.ts";
import type { CodexFold } from "./notes.ts";
import { settle, takeMail } from "./prompts.ts";
import { takeCopiedCount, takeTokenRecord } from "./usage.ts";

/** Takes one row of a session's file into what is known of it. */
export function takeRow(fold: CodexFold, row: Row): void {
  const payload = asObject(row.value["payload"]);
  if (payload === null) {
    takeFlat(fold, row);
    return;
  }
  const type = asText(row.value["type"]);
  if (type === null) throw new Error("it has no type");
  const taken: Taken = { row, payload, at: timeOf(row.value["timestamp"]), ref: refOf(row), count: 0 };
  if (type === "session_meta") {
    takeMeta(fold, taken);
    return;
  }
  if (ownerOf(fold, type, taken) === "left out") {
    if (payload["type"] === "token_count") takeCopiedCount(fold, payload);
    return;
  }
  takeTime(fold, taken.at);
  ROWS.get(type)?.(fold, taken);
}

const ROWS: ReadonlyMap<string, (fold: CodexFold, taken: Taken) => void> = new Map(
  Object.entries({
    response_item(fold: CodexFold, taken: Taken) {
      settle(fold);
      takeItem(fold, taken, { isFlat: false });
    },
    event_msg: takeEvent,
    turn_context({ facts }: CodexFold, { payload }: Taken) {
      facts.model = asText(payload["model"]) ?? facts.model;
      facts.cwd ??= asText(payload["cwd"]);
    },
    compacted(fold: CodexFold, taken: Taken) {
      settle(fold);
      const summary = asText(taken.payload["message"]);
      const text = "The conversation so far was compacted";
      addEntry(fold, taken, noticed(summary === null ? text : `${text}:\n${summary}`));
    },
    inter_agent_communication(fold: CodexFold, taken: Taken) {
      settle(fold);
      const { author, content } = taken.payload;
      takeMail(fold, taken, { author: asText(author), text: asText(content) ?? "" });
    },
    token_usage_record: (fold: CodexFold, { payload }: Taken) => takeTokenRecord(fold, payload),
  }),
);

/**
 * The oldest files: a first line about the session, then the conversation's items as they are, and in
 * between records of the program's state. There are no times but the first.
 */
function takeFlat(fold: CodexFold, row: Row): void {
  const { value } = row;
  const type = asText(value["type"]);
  if (type !== null) {
    const at = timeOf(value["timestamp"]);
    takeTime(fold, at);
    takeItem(fold, { row, payload: value, at, ref: refOf(row), count: 0 }, { isFlat: true });
    return;
  }
  if (asText(value["record_type"]) !== null) return;
  if (asText(value["id"]) === null) throw new Error("it has no type");
  if (!fold.notes.hasMeta) takeFlatHead(fold, value);
}

function takeFlatHead({ facts, notes }: CodexFold, value: JsonObject): void {
  notes.hasMeta = true;
  facts.rootId = facts.id;
  facts.createdAt = timeOf(value["timestamp"]);
  facts.lastAt ??= facts.createdAt;
  facts.gitBranch = asText(asObject(value["git"])?.["branch"]);
}

function takeTime({ facts }: CodexFold, at: number | null): void {
  if (at === null) return;
  facts.createdAt ??= at;
  facts.lastAt = Math.max(facts.lastAt ?? at, at);
}
