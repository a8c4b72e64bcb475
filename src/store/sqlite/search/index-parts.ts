import { numberOf } from "../../column.ts";
import { sql, type Query } from "../../sql.ts";

/** How many pages are merged between two looks at the clock. */
const PAGES = 16;
/** A merge combines at least this many parts of similar size: 2 in quiet moments, otherwise 4. */
const MERGE_MORE = sql`INSERT INTO entry_index (entry_index, rank) VALUES ('usermerge', 2)`;
const MERGE_FEWER = sql`INSERT INTO entry_index (entry_index, rank) VALUES ('usermerge', 4)`;
/** With this many parts or fewer, merging is not worth a write. */
const FEW = 2;

/**
 * Merges parts of the index for some milliseconds. Returns false when nothing is left to merge. Without this
 * FTS5 would merge in the middle of a write. A search looks into every part, so fewer parts make it faster:
 * in quiet moments even two parts of similar size are merged.
 */
export async function mergeParts(
  q: Query,
  { ms, isQuiet }: { ms: number; isQuiet: boolean },
): Promise<boolean> {
  if (!isQuiet) return mergeSome(q, ms);
  if ((await partsOf(q)) <= FEW) return false;
  // The setting is changed and changed back in one write. So if the daemon is killed, the index still has the
  // setting for busy times.
  await q.run(MERGE_MORE);
  const isMore = await mergeSome(q, ms);
  await q.run(MERGE_FEWER);
  return isMore;
}

async function mergeSome(q: Query, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  do {
    const before = await changes(q);
    await q.run(sql`INSERT INTO entry_index (entry_index, rank) VALUES ('merge', ${PAGES})`);
    if ((await changes(q)) - before < 2) return false;
  } while (performance.now() < until);
  return true;
}

function changes(q: Query): Promise<number> {
  return numberOf(q, sql`SELECT total_changes()`);
}

/** Counts the parts by jumping from one to the next, so that the cost does not depend on their size. */
function partsOf(q: Query): Promise<number> {
  const parts = sql`WITH RECURSIVE part (id) AS (
      SELECT min(segid) FROM entry_index_idx
      UNION ALL SELECT (SELECT min(segid) FROM entry_index_idx WHERE segid > id) FROM part WHERE id IS NOT NULL)
    SELECT count(id) FROM part`;
  return numberOf(q, parts);
}
