import { shortText, timeOf } from "../../lines/text.ts";
import { asNumber, asObject, asText, type JsonObject } from "../../lines/value.ts";
import type { ParsedRow } from "./entries.ts";
import { type CodexFold, ROOT_PATH } from "./notes.ts";

/** The first meta record describes this session. Later ones were copied here with another session's rows. */
export function foldMeta(fold: CodexFold, { payload, at }: ParsedRow): void {
  const { facts, notes } = fold;
  if (notes.hasMeta) {
    const id = asText(payload["id"])?.toLowerCase();
    if (id !== undefined && id !== facts.id && !notes.hasTurns && notes.ownFromOffset === null) {
      [notes.copied, notes.isFork] = [notes.copied ?? (facts.isSubagent ? "left out" : "kept"), true];
    }
    return;
  }
  notes.hasMeta = true;
  notes.metaAt = timeOf(payload["timestamp"]) ?? at;
  facts.createdAt = notes.metaAt;
  facts.cwd = asText(payload["cwd"]);
  facts.gitBranch = asText(asObject(payload["git"])?.["branch"]);
  facts.agentVersion = asText(payload["cli_version"]);
  foldOrigin(fold, payload);
  foldFork(fold, payload);
}

/** Records who started the session: a person, another session, or Codex itself. */
function foldOrigin({ facts, notes }: CodexFold, payload: JsonObject): void {
  const source = asObject(payload["source"]);
  const subagent = source?.["subagent"];
  const spawn = asObject(asObject(subagent)?.["thread_spawn"]);
  const parentId = (
    asText(payload["parent_thread_id"]) ?? asText(spawn?.["parent_thread_id"])
  )?.toLowerCase();
  const threadSource = asText(payload["thread_source"]);
  facts.isSubagent = parentId !== undefined || subagent !== undefined || threadSource === "subagent";
  facts.internal =
    source?.["internal"] !== undefined ||
    threadSource === "memory_consolidation" ||
    (subagent !== undefined && spawn === null);
  const path = asText(payload["agent_path"]) ?? asText(spawn?.["agent_path"]);
  const role =
    asText(payload["agent_role"]) ?? asText(payload["agent_type"]) ?? asText(spawn?.["agent_role"]);
  const nickname = asText(payload["agent_nickname"]) ?? asText(spawn?.["agent_nickname"]);
  const rootId = asText(payload["session_id"])?.toLowerCase() ?? null;
  facts.rootId = facts.isSubagent ? (rootId === facts.id ? null : rootId) : facts.id;
  if (!facts.isSubagent) return;
  notes.path = path ?? `${ROOT_PATH}/${facts.id}`;
  facts.agentType = role ?? (typeof subagent === "string" ? subagent : asText(asObject(subagent)?.["other"]));
  facts.name = shortText(path?.slice(path.lastIndexOf("/") + 1)) ?? shortText(nickname);
  if (parentId === undefined) return;
  const taskIds = path === null ? [facts.id] : [facts.id, path];
  facts.parent = { id: parentId, callId: null, taskIds, how: "its first record names its parent" };
}

function foldFork({ facts, notes }: CodexFold, payload: JsonObject): void {
  notes.ownFromOrdinal = asNumber(payload["subagent_history_start_ordinal"]);
  notes.baseEndOrdinal = asNumber(asObject(payload["history_base"])?.["end_ordinal_exclusive"]);
  const isCopied = asText(payload["forked_from_id"]) !== null && payload["history_base"] === undefined;
  if (notes.ownFromOrdinal === null && !isCopied) return;
  [notes.isFork, notes.copied] = [true, facts.isSubagent ? "left out" : "kept"];
}
