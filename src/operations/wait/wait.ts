import type { WaitOutput } from "../../contract/index.ts";
import { isAtWork } from "../../domain/imported.ts";
import { mergeReceipts } from "../../domain/receipt.ts";
import { reportOfTurns } from "../../kernel/callback.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import { requireBelow, resolve } from "../access/resolve.ts";
import { until } from "./until.ts";

/** Waits until the session's round is closed. Leaves the callback in the inbox, so the parent gets it. */
export const wait: Handler<"wait"> = async (deps, caller, { input, call }) => {
  const session = await resolve(deps, caller, input.id);
  await requireBelow(deps, caller, session);
  const turnsBefore = session.turnCount;
  const timeoutMs = Math.max(0, input.timeoutMs);
  const scope = { rootId: session.rootId, timeoutMs, signal: call.signal };
  const done = await until(deps, scope, async () => {
    const now = await deps.store.read.sessions.byId(session.id);
    if (now === null || now.endedAt !== null || !isOpen(now)) return now;
    if (input.until !== "turn") return null;
    const last = await deps.store.read.turns.last(session.id);
    return last !== null && last.status !== "running" && last.index >= turnsBefore - 1 ? now : null;
  });
  return endOf(deps, done ?? session, done === null);
};

async function endOf(deps: OperationDeps, session: SessionRecord, timedOut: boolean): Promise<WaitOutput> {
  const turns = await deps.store.read.turns.ofRound(session.id, session.round);
  const receipts = turns.flatMap((turn) => (turn.receipt === null ? [] : [turn.receipt]));
  const isOver = !isOpen(session);
  const { report, lastWords } = await reportOfTurns(deps.store.read, turns);
  return {
    sessionId: session.id,
    name: session.name,
    outcome: isOver ? session.outcome : null,
    status: session.endedAt !== null ? "ended" : isOver ? "idle" : "working",
    result: session.origin === "imported" ? await lastSaid(deps, session) : report,
    lastWords,
    error: isOver && session.outcome !== "completed" ? session.outcomeReason : null,
    timedOut,
    receipt: receipts.length === 0 ? null : mergeReceipts(receipts),
    usage: session.usage,
  };
}

/** An imported session has no rounds; its files show whether it is still working. */
function isOpen({ origin, evidence, roundOpen }: SessionRecord): boolean {
  return origin === "imported" ? isAtWork(evidence.state) : roundOpen;
}

const LOOKED_AT = 50;

async function lastSaid(deps: OperationDeps, { id }: SessionRecord): Promise<string | null> {
  const tail = await deps.store.read.entries.page(id, { limit: LOOKED_AT });
  return tail.findLast(({ author, kind }) => author === "agent" && kind === "text")?.body.text ?? null;
}
