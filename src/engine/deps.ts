import type { Usage } from "../contract/index.ts";
import type { Deps } from "../kernel/deps.ts";
import type { Driver } from "../drivers/port.ts";
import type { Reaper } from "../system/process.ts";

/** What agents have used, from the files in which they keep their own sessions. */
export interface UsageFiles {
  /** Whether this kind of agent keeps such a file. */
  covers(agent: string): boolean;
  /**
   * Everything that the agent's session has used since it began; null while nothing is known. Reads only
   * what was added since the last call. Never rejects.
   */
  total(agent: string, agentSessionId: string): Promise<Usage | null>;
  /** Forgets how far the file has been read. */
  forget(agentSessionId: string): void;
}

export interface EngineDeps extends Deps {
  readonly usageFiles: UsageFiles;
  readonly drivers: ReadonlyMap<string, Driver>;
  readonly reaper: Reaper;
  /** Where agents reach our tools; null while the server does not listen. */
  readonly toolsUrl: () => string | null;
  readonly rolloutPath: (session: { id: string; createdAt: number }) => string;
  readonly rolloutFolder: string;
  /** Where the rest of messages is that are too long for an entry. */
  readonly messageFolder: string;
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
