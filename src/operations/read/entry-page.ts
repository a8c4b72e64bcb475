import type { EntryRecord, Reads } from "../../store/port/store.ts";

type Page = Parameters<Reads["entries"]["page"]>[1];

/** The message may end while the page is read. */
const TRIES = 5;

/** A page of entries, and behind the last of them the message that is still being written, marked `open`. */
export async function entryPage(
  reads: Pick<Reads, "entries" | "drafts">,
  sessionId: string,
  page: Page,
): Promise<EntryRecord[]> {
  let rows: EntryRecord[] = [];
  for (let tries = 0; tries < TRIES; tries += 1) {
    // The draft first: read the other way round, a message that ends in between would be in neither.
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
