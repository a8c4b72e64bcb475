import type { Usage } from "../contract/index.ts";
import type { Deps } from "../kernel/deps.ts";
import type { Driver } from "../drivers/port.ts";
import type { Reaper } from "../system/process.ts";

export interface UsageFiles {
  /** Whether this kind of agent writes a session file that records its usage. */
  covers(agent: string): boolean;
  /**
   * Returns the total usage of the agent's session since it began; null while it is unknown. Reads only the
   * part of the file that was added since the previous read. Never rejects.
   */
  total(agent: string, agentSessionId: string): Promise<Usage | null>;
  /** Forgets how far the file has been read. */
  forget(agentSessionId: string): void;
}

export interface EngineDeps extends Deps {
  readonly usageFiles: UsageFiles;
  readonly drivers: ReadonlyMap<string, Driver>;
  readonly reaper: Reaper;
  /** The URL at which agents reach our tools; null while the server is not listening. */
  readonly toolsUrl: () => string | null;
  readonly rolloutPath: (session: { id: string; createdAt: number }) => string;
  readonly rolloutFolder: string;
  /** The folder for the remainder of messages that are too long for an entry. */
  readonly messageFolder: string;
  /** Folders no session may work in: the daemon's own home. */
  readonly privateFolders: readonly string[];
}

export interface Service {
  readonly name: string;
  /** Resolves once the service is running. */
  run(): Promise<void>;
  /** Accepts nothing new, ends all running work, and leaves no process or timer behind. */
  stop(): Promise<void>;
}
