/** The environment variable by which a process of an agent is known; every process it starts inherits it. */
export const MARKER = "KINFOLD_LEASE";

/** A process that cannot be mistaken for another one: pids are used again, start times are not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, as in /proc/<pid>/stat; null where the system does not tell. */
  readonly startTime: number | null;
  readonly command: string;
}

/** A process that was seen below an agent. It is the same one only in the same run of the machine. */
export interface RememberedProcess extends ProcessIdentity {
  /** The kernel's boot id; null or absent where it is not known. */
  readonly boot?: string | null;
}

/**
 * Ends what a dead daemon left behind. Never kills a process that neither carries one of the
 * markers, nor is one of the remembered, nor descends from either.
 */
export interface Reaper {
  reap(leaseIds: readonly string[], remembered?: readonly RememberedProcess[]): Promise<ReapReport>;
}

export interface ReapReport {
  readonly killed: readonly ProcessIdentity[];
  readonly left: readonly ProcessIdentity[];
}
