/** The agent process that a write comes from: its session, and the fence it was started with. */
export interface ProcessFence {
  readonly session: string;
  readonly fence: number;
}

/** Returned to a late writer: another process has replaced it, so nothing was written. */
export const STALE: unique symbol = Symbol("stale fence");
export type Stale = typeof STALE;
