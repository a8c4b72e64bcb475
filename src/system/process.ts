/** The environment variable that marks the processes of an agent; child processes inherit it. */
export const MARKER = "KINFOLD_LEASE";

/** Identifies a process uniquely: pids are reused, so the start time is part of it. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, as in /proc/<pid>/stat; null if the system does not report it. */
  readonly startTime: number | null;
  readonly command: string;
}

/** A process that was seen below an agent. It is the same process only in the same boot. */
export interface RememberedProcess extends ProcessIdentity {
  /** The kernel's boot id; null or absent if unknown. */
  readonly boot?: string | null;
}

/**
 * Ends what a dead daemon left behind. Never kills a process that neither carries one of the markers, nor is
 * remembered, nor descends from either.
 */
export interface Reaper {
  reap(leaseIds: readonly string[], remembered?: readonly RememberedProcess[]): Promise<ReapReport>;
}

export interface ReapReport {
  readonly killed: readonly ProcessIdentity[];
  readonly left: readonly ProcessIdentity[];
}
