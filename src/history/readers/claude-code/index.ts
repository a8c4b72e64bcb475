import { foundFacts } from "../../facts.ts";
import { newScan } from "../../lines/folder.ts";
import type { HistoryReader } from "../../port.ts";
import { type RowFormat, rowReader } from "../../lines/row-reader.ts";
import { foldSidecars } from "./sidecars.ts";
import { discover, FORMAT, near, roots } from "./layout.ts";
import { noNotes, type Notes } from "./notes.ts";
import { keepsRegistry, readRegistry } from "./registry.ts";
import { foldRow } from "./fold.ts";

const rows: RowFormat<Notes> = {
  version: 6,
  begin: (found) => ({
    facts: { ...foundFacts(found), internal: found.isSubagent && OWN_HELPER.test(found.id) },
    notes: { own: noNotes(), inline: {}, inlineId: null },
  }),
  foldRow,
  gap({ notes }) {
    Object.assign(notes.own, { ...noNotes(), customTitle: notes.own.customTitle });
  },
  foldSidecars,
};

/** Ids of forks that Claude Code starts on its own, to compact a session or to suggest a prompt. */
const OWN_HELPER = /^a(?:compact|prompt_suggestion)-/u;

export const claudeCode: HistoryReader = {
  format: FORMAT,
  agent: "claude",
  roots,
  discover: (root, onProblem, folder) => discover(newScan(FORMAT, root, onProblem), folder),
  near,
  live: readRegistry,
  listsLive: ({ agentVersion }) => keepsRegistry(agentVersion),
  ...rowReader(rows),
};
