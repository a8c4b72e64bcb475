/** The right to run a session's agent: what one process is started with. */
export interface ProcessLease {
  readonly leaseId: string;
  readonly fence: number;
  /** The token of this process; null where the process runs already. */
  readonly token: string | null;
}
