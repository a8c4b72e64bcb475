import type { EntryRecord, Reads } from "../../store/port/store.ts";

type Page = Parameters<Reads["entries"]["page"]>[1];

/** The most attempts to read a page. An attempt is repeated if the open message ended meanwhile. */
const TRIES = 5;

/** Returns a page of entries, followed by the message that is still being written, marked `open`. */
export async function entryPage(
  reads: Pick<Reads, "entries" | "drafts">,
  sessionId: string,
  page: Page,
): Promise<EntryRecord[]> {
  let rows: EntryRecord[] = [];
  for (let tries = 0; tries < TRIES; tries += 1) {
    // Read the draft before the entries; otherwise a message that ends in between would be in neither of
    // them.
    const open = await reads.drafts.ofSession(sessionId);
    rows = await reads.entries.page(sessionId, page);
    const last = rows.at(-1);
    if (open === null) return rows;
    if (last === undefined || last.index < open.index) return withOpen(rows, open, page);
  }
  return rows;
}

function withOpen(rows: EntryRecord[], open: EntryRecord, { before, after, limit }: Page): EntryRecord[] {
  if (before !== undefined && open.index >= before) return rows;
  if (after === undefined) return [...rows, open].slice(-limit);
  const last = rows.at(-1);
  const isEnd = last === undefined || last.index === open.index - 1;
  return open.index > after && isEnd && rows.length < limit ? [...rows, open] : rows;
}
