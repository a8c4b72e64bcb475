/** The agent process that a write comes from: the session that it runs, and the fence that it started with. */
export interface ProcessFence {
  readonly session: string;
  readonly fence: number;
}

/** The answer to a late writer: another process has replaced this one, and nothing was written. */
export const STALE: unique symbol = Symbol("stale fence");
export type Stale = typeof STALE;
