import { appendFileSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileSize } from "../../system/file-size.ts";

/** A line of a session's journal, from which the session is loaded after a crash. */
export type Record =
  | { readonly kind: "user"; readonly text: string; readonly steered?: boolean }
  | { readonly kind: "agent" | "thought"; readonly text: string }
  /** One more steered message has been answered. */
  | { readonly kind: "answered" }
  /** `done` steps of the prompt are done. The last one bound `value` to the variable `as`. */
  | { readonly kind: "step"; readonly done: number; readonly as: string | null; readonly value: unknown }
  | {
      readonly kind: "tool";
      readonly callId: string;
      readonly name: string;
      readonly input: unknown;
      readonly text: string;
      readonly ok: boolean;
    };

/** One append-only file of JSON lines for each session. */
export class Journal {
  readonly #file: number;

  private constructor(file: number) {
    this.#file = file;
  }

  static create(sessionId: string): Journal {
    return new Journal(openSync(pathOf(sessionId), "ax", 0o600));
  }

  /** Starts a new session with a copy of these records, without the records that only track progress. */
  static copy(sessionId: string, records: readonly Record[]): Journal {
    const journal = Journal.create(sessionId);
    for (const record of records) {
      if (record.kind !== "step" && record.kind !== "answered") journal.append(record);
    }
    return journal;
  }

  /** Null if there is no such session. Drops a last line that a kill left incomplete. */
  static load(sessionId: string): { journal: Journal; records: Record[] } | null {
    if (!SESSION_ID.test(sessionId) || !existsSync(pathOf(sessionId))) return null;
    const text = readFileSync(pathOf(sessionId), "utf8");
    const file = openSync(pathOf(sessionId), "a");
    if (text !== "" && !text.endsWith("\n")) appendFileSync(file, "\n");
    return { journal: new Journal(file), records: text.split("\n").flatMap(parseLine) };
  }

  /** Returns a function that reads the texts that the session had when `texts` was called. */
  static texts(sessionId: string): () => string[] {
    const size = fileSize(pathOf(sessionId));
    return () =>
      readFileSync(pathOf(sessionId))
        .subarray(0, size)
        .toString("utf8")
        .split("\n")
        .flatMap(parseLine)
        .flatMap((record) => ("text" in record ? [record.text] : []));
  }

  append(record: Record): void {
    appendFileSync(this.#file, `${JSON.stringify(record)}\n`);
  }

  appendDurably(record: Record): void {
    this.append(record);
    fsyncSync(this.#file);
  }

  close(): void {
    closeSync(this.#file);
  }
}

const SESSION_ID = /^sim-[0-9a-f-]{36}$/;

function pathOf(sessionId: string): string {
  return join(folder(), `${sessionId}.jsonl`);
}

let made: string | null = null;

function folder(): string {
  if (made === null) {
    made = process.env["KINFOLD_SIM_DIR"] ?? join(tmpdir(), `kinfold-sim-${userInfo().uid}`);
    mkdirSync(made, { recursive: true, mode: 0o700 });
  }
  return made;
}

function parseLine(line: string): Record[] {
  if (line === "") return [];
  try {
    return [JSON.parse(line) as Record];
  } catch {
    return [];
  }
}
