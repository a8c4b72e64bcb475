import { foundFacts } from "../../facts.ts";
import { newScan } from "../../lines/folder.ts";
import type { FoundSession, HistoryReader } from "../../port.ts";
import { type RowFormat, rowReader } from "../../lines/row-reader.ts";
import { discover, FORMAT, roots } from "./files/layout.ts";
import { listsHolders, readLive } from "./live.ts";
import { type CodexFold, type Extra, noNotes, type Notes } from "./notes.ts";
import { settle } from "./prompts.ts";
import { openRollout } from "./files/rollout-bytes.ts";
import { foldRow } from "./fold.ts";

const rows: RowFormat<Notes> = {
  version: 3,
  open: openRollout,
  begin(found) {
    const { path, ownFromOrdinal, ownFromOffset } = found.extra as Extra;
    const notes = noNotes();
    Object.assign(notes, { path: path ?? notes.path, ownFromOrdinal, ownFromOffset });
    return { facts: foundFacts(found), notes };
  },
  foldRow,
  gap({ notes }) {
    Object.assign(notes, { turnOpen: null, turnId: null, turnError: null, held: null, copied: null });
    [notes.open, notes.turns, notes.turnsCut] = [[], [], true];
  },
  endPage: settle,
  async foldSidecars(fold) {
    foldIndexed(fold);
  },
};

const reads = rowReader(rows);

export const codex: HistoryReader = {
  format: FORMAT,
  agent: "codex",
  roots,
  discover: (root, onProblem) => discover(newScan(FORMAT, root, onProblem)),
  live: readLive,
  listsLive: listsHolders,
  ...reads,
  tail: async (found, options) => reads.tail(await withHead(found), options),
};

/** Adds facts from Codex's indexes where the file has none. */
function foldIndexed({ found, facts }: CodexFold): void {
  const { title, closed, parentId } = found.extra as Extra;
  facts.title = title ?? facts.title;
  if (parentId !== null && facts.parent === null && facts.isSubagent) {
    facts.parent = {
      id: parentId,
      callId: null,
      taskIds: [facts.id],
      how: "the agent's index names its parent",
    };
  }
  const how = "the agent's own index";
  facts.told = facts.told.filter((told) => told.how !== how || told.agentId !== facts.id);
  const isOver = ["ended", "failed", "interrupted"].includes(facts.ending.kind);
  if (!closed || isOver) return;
  const told = { agentId: facts.id, callId: null, state: "unknown", how, error: null } as const;
  facts.told.push({ ...told, firstAt: null, at: null });
}

/** Adds facts from the file's head, which distinguish the session's own rows from copied rows in the tail. */
async function withHead(found: FoundSession): Promise<FoundSession> {
  for await (const batch of reads.read(found, null, { chunkBytes: 64 * 1024 })) {
    const state = batch.state();
    const notes = state.notes as Notes;
    if (!notes.hasMeta && state.facts.lastAt === null) continue;
    // Without an ordinal, the end of the copied rows is found only by reading all of them.
    if (notes.copied === "left out" && notes.ownFromOrdinal === null) continue;
    const { path, ownFromOrdinal, ownFromOffset, copied } = notes;
    const isLeftOut = copied === null && state.facts.isSubagent;
    const own = { path, ownFromOrdinal, ownFromOffset: isLeftOut ? ownFromOffset : null };
    return { ...found, isSubagent: state.facts.isSubagent, extra: { ...found.extra, ...own } };
  }
  return found;
}
