import { foundFacts } from "../../facts.ts";
import { newScan } from "../../lines/folder.ts";
import type { FoundSession, HistoryReader } from "../../port.ts";
import { type RowFormat, rowReader } from "../../lines/row-reader.ts";
import { foldSidecars } from "./sidecars.ts";
import { discover, FORMAT, roots } from "./layout.ts";
import { noNotes, type Notes } from "./notes.ts";
import { foldRow } from "./fold.ts";
import { openWhole } from "./whole-file.ts";

const rows: RowFormat<Notes> = {
  version: 3,
  begin: (found) => ({ facts: foundFacts(found), notes: noNotes() }),
  foldRow,
  gap({ notes }) {
    const { projectHash, saidFolder } = notes;
    Object.assign(notes, { ...noNotes(), isCut: true, projectHash, saidFolder });
  },
  foldSidecars,
};

const lines = rowReader(rows);
const whole = rowReader({ ...rows, open: openWhole });

/** Gemini CLI keeps no list of its processes, so `live` never lists a session. */
export const gemini: HistoryReader = {
  format: FORMAT,
  agent: "gemini",
  roots,
  discover: (root, onProblem) => discover(newScan(FORMAT, root, onProblem)),
  live: async () => [],
  read: (found, state, options) => of(found).read(found, state, options),
  glance: (found) => of(found).glance(found),
  tail: (found, options) => of(found).tail(found, options),
};

/** Until the end of 2025 a session's file was one JSON object, rewritten at every change. */
function of({ path }: FoundSession): typeof lines {
  return path.endsWith(".json") ? whole : lines;
}
