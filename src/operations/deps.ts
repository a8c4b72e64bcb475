import type { Limits, Permission, Profile } from "../contract/index.ts";
import type { HistoryReader, UserHome } from "../history/port.ts";
import type { Deps } from "../kernel/deps.ts";

export interface ProfileChoice {
  readonly profiles: readonly Profile[];
  readonly untrusted: readonly { name: string; file: string }[];
}

/** What a project's files lower, with `file:line` of each word; `problems` are what cannot be read of them. */
export interface ProjectCeiling {
  readonly permission: { readonly mode: Permission; readonly where: string } | null;
  readonly limits: Partial<Limits>;
  readonly where: Readonly<Record<string, string>>;
  readonly problems: readonly { where: string; line: number | null; key: string | null; text: string }[];
}

export const NO_CEILING: ProjectCeiling = { permission: null, limits: {}, where: {}, problems: [] };

export interface OperationDeps extends Deps {
  /** Where a person reaches this daemon, for the addresses in replies. */
  readonly address: () => string;
  /** Folders no session may work in: the daemon's own home. */
  readonly privateFolders: readonly string[];
  readonly rolloutPath: (session: { id: string; createdAt: number }) => string;
  /** The profiles there are: built in, of the home, and of this folder's project where it is trusted. */
  readonly profiles: (cwd: string | null) => ProfileChoice | Promise<ProfileChoice>;
  /** What the kinfold.yaml files of this folder's project allow at most. */
  readonly projectCeiling: (cwd: string) => Promise<ProjectCeiling>;
  /** Who reads what agents left on disk; loaded when first asked for. */
  readonly readers: () => Promise<readonly HistoryReader[]>;
  /** Where agents keep what they leave. */
  readonly userHome: UserHome;
  readonly version: string;
  readonly startedAt: number;
}
