import type { Effective } from "../../contract/index.ts";
import type { SessionRecord, TokenRecord } from "./record.ts";
import { NO_USAGE } from "../../contract/no-usage.ts";

/** Initial values of the session fields that no caller chooses. */
export const NEW_SESSION = {
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
  usage: NO_USAGE,
  entryCount: 0,
  positionCount: 0,
  turnCount: 0,
  seen: false,
  endedAt: null,
  endReason: null,
  endBy: null,
  endNote: null,
  replyLostAt: null,
} as const satisfies Partial<SessionRecord>;

/** Returns the effective settings of a session that Kinfold did not start. */
export function unmanagedEffective(
  known: Pick<Effective, "agent" | "node" | "cwd" | "permission"> & Partial<Effective>,
): Effective {
  return {
    agentVersion: null,
    model: null,
    profile: "default",
    tools: null,
    limits: {},
    workspace: "shared",
    inherit: "none",
    ...known,
  };
}

/** Initial values of a token's fields: no limits except those of its kind. */
export const NEW_TOKEN = {
  can: null,
  scope: null,
  ceiling: null,
  roots: null,
  expiresAt: null,
  revokedAt: null,
} as const satisfies Partial<TokenRecord>;
