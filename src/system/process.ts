/** The environment variable that marks an agent's processes; child processes inherit it. */
export const MARKER = "KINFOLD_LEASE";

/** Identifies a process uniquely: pids are reused, so the start time is part of it. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, as in /proc/<pid>/stat; null if the system does not report it. */
  readonly startTime: number | null;
  readonly command: string;
}

/** A descendant of an agent's process, remembered so that it can be killed even without the marker. */
export interface RememberedProcess extends ProcessIdentity {
  /** The id of the system boot that the start time counts from; null or absent if unknown. */
  readonly boot?: string | null;
}

/**
 * Kills the processes that a dead daemon left behind: those that carry a marker or are remembered, and their
 * descendants. Never kills any other process.
 */
export interface Reaper {
  reap(leaseIds: readonly string[], remembered?: readonly RememberedProcess[]): Promise<ReapReport>;
}

export interface ReapReport {
  readonly killed: readonly ProcessIdentity[];
  readonly left: readonly ProcessIdentity[];
}
