import { setImmediate as others } from "node:timers/promises";
import { TranscriptWriter } from "../../domain/transcript.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";
import { entryPage } from "./entry-page.ts";
import { viewEntry } from "./view.ts";

/** Pages are small, so that a long transcript does not block other callers. */
const PAGE = { limit: 200, bytesMax: 512 * 1024 } as const;
/** The most characters in one reply. A longer transcript can be read entry by entry. */
const CHARS_MAX = 16 * 1024 * 1024;

export async function transcriptOf(
  deps: OperationDeps,
  session: SessionRecord,
  { format, turn }: { format: "text" | "markdown"; turn: TurnRecord | null },
): Promise<string> {
  const { read } = deps.store;
  const title = session.name ?? session.title ?? session.shortId;
  const gone = await read.retention.keptFrom(session.id);
  const keptFrom = turn === null || gone > turn.entryFrom ? gone : 0;
  const writer = new TranscriptWriter(format, { title, agent: session.agent, keptFrom });
  for (let after = (turn?.entryFrom ?? 0) - 1; ;) {
    const page = await entryPage(read, session.id, { after, ...PAGE });
    for (const entry of page) {
      if (turn === null || entry.turnId === turn.id) writer.add(viewEntry(entry));
    }
    const last = page.at(-1);
    if (last === undefined || last.body.open === true) return writer.end();
    if (turn !== null && turn.entryTo !== null && last.index >= turn.entryTo - 1) return writer.end();
    if (writer.chars > CHARS_MAX)
      return writer.end(`(It goes on: GET …/entries?after=${last.index} has the rest.)`);
    after = last.index;
    await others();
  }
}
