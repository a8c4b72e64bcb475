import type { Config } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/port/store.ts";

/** The dependencies of operations and engine, which communicate only through the store. */
export interface Deps {
  readonly store: Store;
  readonly config: Config;
  readonly log: Log;
  /** Wall clock, in milliseconds. */
  readonly now: () => number;
  /** Called at named moments between two durable steps. Only crash tests use it, to kill the process. */
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
  "work.reported",
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
