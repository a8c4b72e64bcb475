import type { Deps } from "../kernel/deps.ts";
import type { Driver, Reaper } from "../drivers/port.ts";

export interface EngineDeps extends Deps {
  readonly drivers: ReadonlyMap<string, Driver>;
  readonly reaper: Reaper;
  /** Where agents reach our tools; null while the server does not listen. */
  readonly toolsUrl: () => string | null;
  readonly rolloutPath: (session: { id: string; createdAt: number }) => string;
  readonly rolloutFolder: string;
  /** Folders no session may work in: the daemon's own home. */
  readonly privateFolders: readonly string[];
}

/** The one shape of everything long-lived. */
export interface Service {
  readonly name: string;
  /** Resolves once it is at work. */
  run(): Promise<void>;
  /** Takes on nothing new, ends what it holds, and leaves nothing behind. */
  stop(): Promise<void>;
}
