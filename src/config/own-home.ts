import { chmodSync, lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import type { Paths } from "./paths.ts";
import { ConfigError, type ConfigProblem, problemIn } from "./problem.ts";

/**
 * Refuses a home that another user owns or could have written into, because that user may know its token.
 * Closes our own home (mode 0700) and its token (0600) to others. A missing home passes.
 */
export function requireOwnHome(paths: Paths): void {
  const uid = process.getuid?.();
  const home = statSync(paths.home, { throwIfNoEntry: false });
  if (uid === undefined || home === undefined) return;
  const foreign = ownerProblem(paths.home, home, { uid, next: "set KINFOLD_HOME to a folder of your own" });
  if (foreign !== null) throw new ConfigError([foreign], "home");
  const isOpen = (home.mode & 0o077) !== 0;
  const names = readdirSync(paths.home);
  const problems = names.flatMap((name) => fileProblem(join(paths.home, name), { paths, uid, isOpen }) ?? []);
  if (problems.length > 0) throw new ConfigError(problems, "home");
  if (isOpen) chmodSync(paths.home, 0o700);
  if (names.includes("token") && (statSync(paths.token).mode & 0o077) !== 0) chmodSync(paths.token, 0o600);
}

interface Looking {
  readonly paths: Paths;
  readonly uid: number;
  /** True if other users could access the files of the home. */
  readonly isOpen: boolean;
}

const REMOVE = "find out who put it there, then remove it";

function fileProblem(file: string, { paths, uid, isOpen }: Looking): ConfigProblem | null {
  const link = lstatSync(file, { throwIfNoEntry: false });
  const found = statSync(file, { throwIfNoEntry: false });
  // The file may be gone by now, because the database creates and deletes files at any time.
  if (link === undefined || found === undefined) return null;
  const foreign =
    ownerProblem(file, link, { uid, next: REMOVE }) ?? ownerProblem(file, found, { uid, next: REMOVE });
  if (foreign !== null) return foreign;
  if (file === paths.token && (!link.isFile() || link.nlink > 1)) {
    return problemIn(file, `is a link or not a plain file; ${REMOVE}; the next start creates a new token`);
  }
  if (!isOpen || (found.mode & 0o022) === 0) return null;
  const mode = (found.mode & 0o777).toString(8);
  return problemIn(
    file,
    `other users could have written it (mode ${mode}, in a home that they could access); check its content, then run chmod go-w on it, or remove it`,
  );
}

/** Files of root count as ours, because root can do everything anyway. */
function ownerProblem(
  file: string,
  { uid: owner }: Stats,
  { uid, next }: { uid: number; next: string },
): ConfigProblem | null {
  if (owner === uid || owner === 0) return null;
  return problemIn(file, `belongs to another user (uid ${owner}); ${next}`);
}
