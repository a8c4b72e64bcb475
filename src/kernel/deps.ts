import type { Config } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/port/store.ts";

/** What operations and engine are given. Both meet in the store and nowhere else. */
export interface Deps {
  readonly store: Store;
  readonly config: Config;
  readonly log: Log;
  /** Wall clock, in milliseconds. */
  readonly now: () => number;
  /**
   * Named moments between two durable steps. Nothing depends on it; the crash table ends the
   * process there.
   */
  readonly reached: (moment: Moment) => void;
}

export const MOMENTS = [
  "spawn.parsed",
  "spawn.decided",
  "spawn.committed",
  "turn.claimed",
  "process.starting",
  "agent.started",
  "agent.identified",
  "prompt.sent",
  "entries.appended",
  "outcome.received",
  "settle.committed",
  "steer.taken",
  "steer.sent",
  "wait.taken",
  "cancel.committed",
  "resume.claimed",
  "resume.loaded",
  "message.returned",
] as const;
export type Moment = (typeof MOMENTS)[number];
