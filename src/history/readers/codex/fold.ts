import type { Row } from "../../lines/json-lines.ts";
import { seenAt } from "../../facts.ts";
import { noticed } from "../../lines/entry-body.ts";
import { timeOf } from "../../lines/text.ts";
import { asObject, asText, type JsonObject } from "../../lines/value.ts";
import { isLeftOut } from "./copied.ts";
import { addEntry, refOf, type ParsedRow } from "./entries.ts";
import { foldEvent } from "./events.ts";
import { foldItem } from "./items.ts";
import { foldMeta } from "./meta.ts";
import type { CodexFold } from "./notes.ts";
import { settle, foldMail } from "./prompts.ts";
import { foldCopiedCount, foldTokenRecord } from "./usage.ts";

export function foldRow(fold: CodexFold, row: Row): void {
  const payload = asObject(row.value["payload"]);
  if (payload === null) {
    foldFlat(fold, row);
    return;
  }
  const type = asText(row.value["type"]);
  if (type === null) throw new Error("it has no type");
  const parsed: ParsedRow = { row, payload, at: timeOf(row.value["timestamp"]), ref: refOf(row), count: 0 };
  if (type === "session_meta") {
    foldMeta(fold, parsed);
    return;
  }
  if (isLeftOut(fold, type, parsed)) {
    if (payload["type"] === "token_count") foldCopiedCount(fold, payload);
    return;
  }
  foldTime(fold, parsed.at);
  ROWS.get(type)?.(fold, parsed);
}

const ROWS = new Map(
  Object.entries<(fold: CodexFold, parsed: ParsedRow) => void>({
    response_item(fold, parsed) {
      settle(fold);
      foldItem(fold, parsed, { isFlat: false });
    },
    event_msg: foldEvent,
    turn_context({ facts }, { payload }) {
      facts.model = asText(payload["model"]) ?? facts.model;
      facts.cwd ??= asText(payload["cwd"]);
    },
    compacted(fold, parsed) {
      settle(fold);
      const summary = asText(parsed.payload["message"]);
      const text = "The conversation so far was compacted";
      addEntry(fold, parsed, noticed(summary === null ? text : `${text}:\n${summary}`));
    },
    inter_agent_communication(fold, parsed) {
      settle(fold);
      const { author, content } = parsed.payload;
      foldMail(fold, parsed, { author: asText(author), text: asText(content) ?? "" });
    },
    token_usage_record: (fold, { payload }) => foldTokenRecord(fold, payload),
  }),
);

/**
 * Reads the oldest format: a line about the session, then the conversation's items without an envelope, mixed
 * with records of Codex's state. Only the first line has a time.
 */
function foldFlat(fold: CodexFold, row: Row): void {
  const { value } = row;
  const type = asText(value["type"]);
  if (type !== null) {
    const at = timeOf(value["timestamp"]);
    foldTime(fold, at);
    foldItem(fold, { row, payload: value, at, ref: refOf(row), count: 0 }, { isFlat: true });
    return;
  }
  if (asText(value["record_type"]) !== null) return;
  if (asText(value["id"]) === null) throw new Error("it has no type");
  if (!fold.notes.hasMeta) foldFlatHead(fold, value);
}

function foldFlatHead({ facts, notes }: CodexFold, value: JsonObject): void {
  notes.hasMeta = true;
  facts.rootId = facts.id;
  facts.createdAt = timeOf(value["timestamp"]);
  facts.lastAt ??= facts.createdAt;
  facts.gitBranch = asText(asObject(value["git"])?.["branch"]);
}

function foldTime({ facts }: CodexFold, at: number | null): void {
  facts.createdAt ??= at;
  seenAt(facts, at);
}
