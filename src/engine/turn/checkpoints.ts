import { automaticSummary, filesTouched } from "../../domain/inheritance.ts";
import type { Seen } from "../../domain/receipt.ts";
import { newId } from "../../system/id.ts";
import type { EntryRecord, SessionRecord, Tx, TurnRecord } from "../../store/port/store.ts";
import { firstChars } from "../../text/fence.ts";

const SUMMARY_CHARS_MAX = 20_000;

/** Stores an agent's summary of its compacted conversation as a checkpoint, with the entry's index. */
export async function keepCompactions(
  tx: Tx,
  turn: TurnRecord,
  appended: readonly EntryRecord[],
): Promise<void> {
  for (const entry of appended) {
    const summary = entry.kind === "notice" ? summaryIn(entry.body.input) : null;
    if (summary === null) continue;
    await tx.checkpoints.add({
      id: newId(),
      rootId: turn.rootId,
      sessionId: turn.sessionId,
      turnId: turn.id,
      kind: "compaction",
      summary: firstChars(summary, SUMMARY_CHARS_MAX).toWellFormed(),
      entities: [],
      constraints: {},
      entryIndex: entry.index,
      at: entry.at,
    });
  }
}

/** Makes an automatic checkpoint when a turn settles, if the turn made a plan or touched files. */
export async function checkpointTurn(
  tx: Tx,
  of: { session: SessionRecord; turn: TurnRecord; seen: Seen; entryIndex: number; now: number },
): Promise<void> {
  const { session, turn, seen } = of;
  if (seen.plan === null && seen.touched.size === 0) return;
  const { automatic } = await tx.checkpoints.latest(session.id);
  const isNewPlan = seen.plan !== null || automatic === null;
  await tx.checkpoints.replaceAutomatic({
    id: newId(),
    rootId: session.rootId,
    sessionId: session.id,
    turnId: turn.id,
    kind: "automatic",
    summary: isNewPlan ? automaticSummary(session.title ?? session.name, seen.plan ?? []) : automatic.summary,
    entities: filesTouched(seen.touched, { before: automatic?.entities ?? [], cwd: session.cwd }),
    constraints: {},
    entryIndex: of.entryIndex,
    at: of.now,
  });
}

function summaryIn(input: unknown): string | null {
  const summary = typeof input === "object" && input !== null && "summary" in input ? input.summary : null;
  return typeof summary === "string" ? summary : null;
}
