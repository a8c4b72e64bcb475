import { entriesWithWords } from "../entry.ts";
import { indexedWords, type EntryIndex } from "../entry-index.ts";

/** Rows in one statement: few enough for its text to be kept and its parameters to be allowed. */
const ROWS_MAX = 32;

export const postgresEntryIndex: EntryIndex = {
  async insert(q, records, session) {
    for (let at = 0; at < records.length; at += ROWS_MAX) {
      const rows = records
        .slice(at, at + ROWS_MAX)
        .map((record) => ({ ...record, words: vectorOf(indexedWords(record, session)) }));
      await q.run(entriesWithWords.insert(rows));
    }
  },
};

/** Words with their places, as PostgreSQL reads them. None holds a quote or a backslash. */
export function vectorOf(words: readonly string[]): string {
  const places = new Map<string, number[]>();
  for (const [at, word] of words.entries()) {
    const known = places.get(word);
    if (known === undefined) places.set(word, [at + 1]);
    else known.push(at + 1);
  }
  return [...places].map(([word, at]) => `'${word}':${at.join(",")}`).join(" ");
}
