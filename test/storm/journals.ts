import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import type { Record as JournalRecord } from "../../src/drivers/sim/journal.ts";

/** One time that an agent got a message, by its own record. */
export interface Got {
  readonly file: string;
  /** Which record of the file. */
  readonly at: number;
  readonly by: "prompt" | "steer" | "tool";
  /** It says that the agent may have seen it already. */
  readonly isMarked: boolean;
}

export interface Journals {
  readonly files: ReadonlyMap<string, readonly JournalRecord[]>;
  /** By delivery id, in the order of the record. */
  readonly got: ReadonlyMap<string, readonly Got[]>;
}

/** What the agents of a home have kept of their conversations. */
export function readJournals(home: string): Journals {
  const files = new Map<string, JournalRecord[]>();
  const got = new Map<string, Got[]>();
  for (const file of journalFiles(home)) {
    const records = readFileSync(path.join(home, "sim", `${file}.jsonl`), "utf8")
      .split("\n")
      .flatMap(recordIn);
    files.set(file, records);
    for (const [at, record] of records.entries()) {
      if (record.kind !== "user" && record.kind !== "tool") continue;
      const by = record.kind === "tool" ? "tool" : record.steered === true ? "steer" : "prompt";
      for (const { id, isMarked } of deliveriesIn(record.text)) {
        got.set(id, [...(got.get(id) ?? []), { file, at, by, isMarked }]);
      }
    }
  }
  return { files, got };
}

/** How long each journal is now. */
export function journalSizes(home: string): Map<string, number> {
  return new Map(
    journalFiles(home).map((file) => [file, statSync(path.join(home, "sim", `${file}.jsonl`)).size]),
  );
}

function journalFiles(home: string): string[] {
  const folder = path.join(home, "sim");
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => name.slice(0, -".jsonl".length))
    .toSorted();
}

function recordIn(line: string): JournalRecord[] {
  if (line === "") return [];
  try {
    return [JSON.parse(line) as JournalRecord];
  } catch {
    // A line cut by a kill: the agent gives it up as well.
    return [];
  }
}

const ID = /^<!-- (trigger|message):([\w-]{1,64}) -->[ \t]*\r?$/;
const MARK = /You may have seen this already|You have read this before/;

/** The delivery ids in a text, each with whether it is marked as a repeat. A trigger's id is its first line, a message's its last. */
export function deliveriesIn(text: string): { id: string; isMarked: boolean }[] {
  const lines = text.split("\n");
  const found = new Map<string, boolean>();
  let from = 0;
  for (const [at, line] of lines.entries()) {
    const [, kind, id = ""] = ID.exec(line) ?? [];
    if (kind === undefined) continue;
    const isMarked =
      kind === "trigger"
        ? MARK.test(lines[at + 1] ?? "") || MARK.test(lines[at - 1] ?? "")
        : lines.slice(from, at).some((each) => MARK.test(each));
    found.set(id, (found.get(id) ?? true) && isMarked);
    // The line behind a trigger's id is its own mark, not that of the message after it.
    from = kind === "trigger" ? at + 2 : at + 1;
  }
  return [...found].map(([id, isMarked]) => ({ id, isMarked }));
}
