import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import type { Record as JournalRecord } from "../../src/drivers/sim/journal.ts";

/** One arrival of a message at an agent, as the agent's journal records it. */
export interface Got {
  readonly file: string;
  /** The index of the record in the file. */
  readonly at: number;
  readonly by: "prompt" | "steer" | "tool";
  /** Whether the message was marked as possibly seen before. */
  readonly isMarked: boolean;
}

export interface Journals {
  readonly files: ReadonlyMap<string, readonly JournalRecord[]>;
  /** The arrivals of each message, by delivery id, in the order of the journal. */
  readonly got: ReadonlyMap<string, readonly Got[]>;
}

/** Reads the journals in which the agents of a home record their conversations. */
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

/** Returns the current size of each journal in bytes. */
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
    // A kill cut this line off. The agent ignores such a line too.
    return [];
  }
}

const ID = /^<!-- (trigger|message):([\w-]{1,64}) -->[ \t]*\r?$/;
const MARK = /You may have seen this already|You have read this before/;

/**
 * Returns the delivery ids in a text, and whether each delivery is marked as a repeat. A trigger begins with
 * its id; a message ends with its id.
 */
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
    // The line after a trigger's id belongs to the trigger, so a mark in it does not mark the next message.
    from = kind === "trigger" ? at + 2 : at + 1;
  }
  return [...found].map(([id, isMarked]) => ({ id, isMarked }));
}
