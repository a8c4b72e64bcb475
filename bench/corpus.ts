import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { EntryBody } from "../src/contract/index.ts";
import type { NewEntry, SessionRecord, Store } from "../src/store/port/store.ts";
import { aChild, aSession } from "../src/store/testing/sample.ts";

/**
 * Generated text in which a few words are common and most are rare, as in real transcripts. It is the same on
 * every machine.
 */
export class Corpus {
  readonly sessions: SessionRecord[] = [];
  bytes = 0;
  #state = 12_345;
  #at = Date.now() - 30 * 86_400_000;

  /** The nth most frequent word. */
  word(n: number): string {
    let rest = n + 11;
    let word = "";
    for (; rest > 0; rest = Math.floor(rest / LETTERS.length)) word += LETTERS[rest % LETTERS.length];
    return n < 60 ? word : word + ENDINGS[n % ENDINGS.length];
  }

  /** Plans trees of eight sessions: a root and seven children. */
  plan(count: number): void {
    let root: SessionRecord | null = null;
    for (let n = 0; n < count; n++) {
      const fields = { name: `work-${n}`, roundOpen: false, agent: AGENTS[n % AGENTS.length] as string };
      const session: SessionRecord = n % 8 === 0 || root === null ? aSession(fields) : aChild(root, fields);
      if (session.parentId === null) root = session;
      this.sessions.push(session);
    }
  }

  entry(): NewEntry {
    this.#at += Math.floor(this.#random() * 40_000);
    const length = 30 + Math.floor(this.#random() ** 3 * 500);
    const text = Array.from({ length }, () => this.#pick()).join(" ");
    this.bytes += Buffer.byteLength(text);
    const isTool = this.#random() < 0.4;
    const body: EntryBody = isTool ? { text, tool: "Bash", command: `npm run ${this.#pick()}` } : { text };
    return {
      turnId: null,
      author: isTool ? "tool" : "agent",
      kind: isTool ? "toolResult" : "text",
      isSubagent: false,
      at: this.#at,
      body,
    };
  }

  any<T>(of: readonly T[]): T {
    return of[Math.floor(this.#random() * of.length)]!;
  }

  #pick(): string {
    return this.word(Math.min(WORDS - 1, Math.floor(WORDS ** this.#random())));
  }

  #random(): number {
    this.#state = (Math.imul(this.#state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return this.#state / 0x8000_0000;
  }
}

/**
 * Writes sessions and entries as turns do: a few entries of one session at a time, several sessions
 * concurrently.
 */
export async function fill(store: Store, corpus: Corpus, entries: number): Promise<void> {
  for (const session of corpus.sessions) await store.write(session.rootId, (tx) => tx.sessions.add(session));
  let left = entries;
  const writer = async (): Promise<void> => {
    while (left > 0) {
      const batch = Array.from({ length: Math.min(BATCH, left) }, () => corpus.entry());
      left -= batch.length;
      await append(store, corpus.any(corpus.sessions), batch);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

export async function append(
  store: Store,
  session: SessionRecord,
  batch: readonly NewEntry[],
): Promise<void> {
  await store.write(session.rootId, (tx) => tx.entries.append(session.id, batch));
}

/** Writes the text of the stored entries to files, one per session, which grep searches for comparison. */
export async function exported(store: Store, corpus: Corpus, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const { id } of corpus.sessions) {
    const page = await store.read.entries.page(id, { after: -1, limit: 10_000 });
    writeFileSync(path.join(folder, `${id}.txt`), page.map(({ body }) => `${body.text}\n`).join(""));
  }
}

export const BATCH = 8;
const WRITERS = 4;
const WORDS = 60_000;
const LETTERS = "etaoinshrdlucmfwypvbgkjqxz";
const ENDINGS = ["", "er", "ing", "ed", "s", "tion", "ly"];
const AGENTS = ["claude", "codex", "gemini", "opencode"];
