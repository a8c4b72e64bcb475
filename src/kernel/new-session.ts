import type { SessionRecord } from "../store/port/store.ts";

/** What a session's life has brought: everything that nobody decides when it is made. */
export type SessionLife = Pick<
  SessionRecord,
  | "detachedAt"
  | "spawnTurnId"
  | "spawnEntryIndex"
  | "round"
  | "roundOpen"
  | "roundOpenedAt"
  | "roundClosedAt"
  | "outcome"
  | "outcomeReason"
  | "held"
  | "backgroundUntil"
  | "parked"
  | "pausedMs"
  | "agentSessionId"
  | "fence"
  | "messageCount"
  | "toolUseCount"
  | "usage"
  | "entryCount"
  | "positionCount"
  | "turnCount"
  | "seen"
  | "endedAt"
  | "endReason"
  | "endBy"
  | "endNote"
  | "replyLostAt"
>;

/** The life of a session that has not begun. */
export function newSessionLife(): SessionLife {
  return {
    detachedAt: null,
    spawnTurnId: null,
    spawnEntryIndex: null,
    round: 0,
    roundOpen: false,
    roundOpenedAt: null,
    roundClosedAt: null,
    outcome: null,
    outcomeReason: null,
    held: null,
    backgroundUntil: null,
    parked: null,
    pausedMs: 0,
    agentSessionId: null,
    fence: 0,
    messageCount: 0,
    toolUseCount: 0,
    usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null },
    entryCount: 0,
    positionCount: 0,
    turnCount: 0,
    seen: false,
    endedAt: null,
    endReason: null,
    endBy: null,
    endNote: null,
    replyLostAt: null,
  };
}
