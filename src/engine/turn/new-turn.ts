import { NO_USAGE } from "../../contract/index.ts";
import { newId } from "../../system/id.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";

type Decided = Pick<TurnRecord, "kind" | "fence" | "description" | "reservedTokens" | "reservedUsd">;

/** The row of a turn that begins now. */
export function newTurn(
  { store, now }: EngineDeps,
  session: SessionRecord,
  decided: Decided,
): Omit<TurnRecord, "rootId" | "index"> {
  return {
    id: newId(),
    sessionId: session.id,
    round: session.round,
    status: "running",
    node: store.node,
    boot: store.boot,
    attempt: 1,
    attemptsBegun: 0,
    attemptFrom: session.entryCount,
    startedAt: now(),
    settledAt: null,
    error: null,
    stopReason: null,
    lastAssistantMessage: null,
    entryFrom: session.entryCount,
    entryTo: null,
    toolUseCount: 0,
    usage: NO_USAGE,
    receipt: null,
    blocked: 0,
    stopBy: null,
    stopNote: null,
    ...decided,
  };
}
