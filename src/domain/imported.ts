import type {
  Evidence,
  HistoryScan,
  HistoryState,
  Outcome,
  SessionStatus,
  Waiting,
} from "../contract/index.ts";

export function importedStatus({ state, at }: Evidence): { status: SessionStatus; waiting: Waiting | null } {
  switch (state) {
    case "running":
      return { status: "running", waiting: null };
    case "waiting":
      return { status: "waiting", waiting: { on: "trigger", since: at } };
    case "pending":
      return { status: "waiting", waiting: { on: "slot", since: at } };
    case "cancelled":
    case "orphaned":
      return { status: "ended", waiting: null };
    default:
      return { status: "idle", waiting: null };
  }
}

/** Returns how the last work ended; null while it continues or if the end is unknown. */
export function importedOutcome(state: HistoryState): Outcome | null {
  switch (state) {
    case "completed":
    case "failed":
    case "cancelled":
    case "interrupted":
      return state;
    case "orphaned":
      return "interrupted";
    default:
      return null;
  }
}

export function isAtWork(state: string): boolean {
  return state === "running" || state === "waiting" || state === "pending";
}

export function newScan(of: Pick<HistoryScan, "enabled" | "phase" | "exclude">): HistoryScan {
  return {
    ...of,
    error: null,
    startedAt: null,
    listedAt: null,
    readAt: null,
    files: 0,
    filesRead: 0,
    bytes: 0,
    bytesRead: 0,
    excluded: 0,
    found: [],
    problemCount: 0,
  };
}
