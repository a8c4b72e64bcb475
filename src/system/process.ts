/** The environment variable that marks an agent's processes; child processes inherit it. */
export const MARKER = "KINFOLD_LEASE";

/** Identifies a process uniquely: pids are reused, so the start time is part of it. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, as in /proc/<pid>/stat; null if the system does not report it. */
  readonly startTime: number | null;
  readonly command: string;
}

/** A process seen below an agent. */
export interface RememberedProcess extends ProcessIdentity {
  /** The boot in which the start time is valid; null or absent if unknown. */
  readonly boot?: string | null;
}

/**
 * Ends what a dead daemon left behind: processes that carry a marker or are remembered, and their
 * descendants. Never kills any other process.
 */
export interface Reaper {
  reap(leaseIds: readonly string[], remembered?: readonly RememberedProcess[]): Promise<ReapReport>;
}

export interface ReapReport {
  readonly killed: readonly ProcessIdentity[];
  readonly left: readonly ProcessIdentity[];
}
