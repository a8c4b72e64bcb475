import type {
  InputOf,
  Limits,
  OperationName,
  OutputOf,
  Permission,
  Profile,
  ProfileProblem,
} from "../contract/index.ts";
import type { HistoryReader, UserHome } from "../history/port.ts";
import type { Deps } from "../kernel/deps.ts";
import type { Call, CallerContext } from "./port.ts";

export interface ProfileChoice {
  readonly profiles: readonly Profile[];
  readonly untrusted: readonly { name: string; file: string }[];
  /** Files that cannot be used, each with the names that are refused because of it. */
  readonly problems: readonly ProfileProblem[];
}

/** Limits set by a project's files. `where` has the `file:line` of each limit. */
export interface ProjectCeiling {
  readonly permission: { readonly mode: Permission; readonly where: string } | null;
  readonly limits: Partial<Limits>;
  readonly where: Readonly<Record<string, string>>;
  readonly problems: readonly { where: string; line: number | null; key: string | null; text: string }[];
}

export const NO_CEILING: ProjectCeiling = { permission: null, limits: {}, where: {}, problems: [] };

export interface OperationDeps extends Deps {
  /** The address at which people reach this daemon. Replies contain it. */
  readonly address: () => string;
  /** Folders that no session may work in: the daemon's home. */
  readonly privateFolders: readonly string[];
  readonly rolloutPath: (session: { id: string; createdAt: number }) => string;
  /** The available profiles: built in, from the home, and from this folder's project if it is trusted. */
  readonly profiles: (cwd: string | null) => ProfileChoice | Promise<ProfileChoice>;
  /** The ceiling set by the kinfold.yaml files of this folder's project. */
  readonly projectCeiling: (cwd: string) => Promise<ProjectCeiling>;
  /** Readers of the files that agents leave on disk; loaded on first use. */
  readonly readers: () => Promise<readonly HistoryReader[]>;
  /** Where agents keep their files. */
  readonly userHome: UserHome;
  readonly version: string;
  readonly startedAt: number;
}

/** Carries out one operation. It may only use the store and wake sessions; the engine does the rest. */
export type Handler<N extends OperationName> = (
  deps: OperationDeps,
  caller: CallerContext,
  { input, call }: { readonly input: InputOf<N>; readonly call: Call },
) => Promise<OutputOf<N>>;
