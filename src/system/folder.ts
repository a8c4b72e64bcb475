import { createHash } from "node:crypto";
import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import path from "node:path";

/**
 * Whether `file` is `folder` or below it. Compares path segments: `/a/..evil` is inside `/a`, `/ab` is not.
 * Does not resolve links; resolve them first if they matter.
 */
export function isInside(file: string, folder: string): boolean {
  const way = path.relative(folder, file);
  return way.split(path.sep)[0] !== ".." && !path.isAbsolute(way);
}

/**
 * Returns the path that a write to this path would reach. For a missing file, this is a path below its
 * nearest existing folder, with all links resolved. For a dangling link, this is where the link's target
 * would be created.
 */
export function realPathOf(file: string, linksLeft = 40): string {
  if (existsSync(file)) return realpathSync(file);
  const parent = path.dirname(file);
  if (parent === file) return file;
  const link = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(file) : null;
  const folder = realPathOf(parent, linksLeft);
  if (link === null) return path.join(folder, path.basename(file));
  // A cycle of links resolves to the root, which is inside no other folder.
  return linksLeft === 0 ? path.parse(file).root : realPathOf(path.resolve(folder, link), linksLeft - 1);
}

/** Returns the nearest folder at or above this one that contains `.git`, or null. */
export function gitTop(folder: string): string | null {
  for (let at = folder; ; at = path.dirname(at)) {
    if (existsSync(path.join(at, ".git"))) return at;
    if (path.dirname(at) === at) return null;
  }
}

/** The maximum length of a scope. Every index can hold a scope of this length uncut. */
const SCOPE_MAX = 190;

const PATH_MAX = 4_096;
const NO_FOLDER = "no folder";

/**
 * Returns a session's default scope: its git top level, else its folder. A path that is too long is cut and
 * gets a hash of the whole path. The folder of an imported session may be any text. All texts that are not a
 * valid absolute path share one scope.
 */
export function folderScope(folder: string): string {
  if (!path.isAbsolute(folder) || folder.length > PATH_MAX || folder.includes("\0")) return NO_FOLDER;
  const real = realPathOf(folder);
  const scope = gitTop(real) ?? real;
  if (scope.length <= SCOPE_MAX) return scope;
  const hash = createHash("sha256").update(scope).digest("hex").slice(0, 32);
  return `${scope.slice(0, SCOPE_MAX - 33)}~${hash}`;
}

/** Distinguishes a folder from another folder that has replaced it at the same path. */
export interface FolderIdentity {
  readonly dev: number;
  readonly ino: number;
}

export function folderIdentity(folder: string): FolderIdentity {
  const { dev, ino } = statSync(folder);
  return { dev, ino };
}

/** Where sessions may work: in `roots` (empty: anywhere), and never in `closed`. */
export interface FolderRule {
  readonly roots: readonly string[];
  readonly closed: readonly string[];
}

/** Applies a rule to a folder's real path. The rule's folders may be links. */
export function folderVerdict(real: string, rule: FolderRule): "allowed" | "closed" | "outside" {
  if (rule.closed.some((each) => isInside(real, realPathOf(each)))) return "closed";
  const { roots } = rule;
  return roots.length === 0 || roots.some((each) => isInside(real, realPathOf(path.resolve(each))))
    ? "allowed"
    : "outside";
}

/**
 * Returns why a process may not start in a folder that was allowed earlier, or null. `folder` was a real path
 * when it was allowed, so a link anywhere in it means that the folder has been replaced.
 */
export function folderChange(
  folder: string,
  granted: FolderRule & { readonly identity: FolderIdentity | null },
): string | null {
  const real = existsSync(folder) ? realpathSync(folder) : null;
  if (real === null) return `the folder ${folder} no longer exists`;
  if (real !== folder) {
    return `the folder ${folder} was replaced by a link to ${real} after the session was started`;
  }
  if (!statSync(folder).isDirectory()) return `${folder} is no longer a folder`;
  if (isAnother(folder, granted.identity)) {
    return `the folder ${folder} was replaced by another one after the session was started`;
  }
  const verdict = folderVerdict(real, granted);
  if (verdict === "allowed") return null;
  return verdict === "closed"
    ? `${folder} is inside Kinfold's own home, where no session may work`
    : `${folder} is outside the folders sessions may work in (${granted.roots.join(", ")})`;
}

/** Compares inodes only if the device numbers are equal: a remount may change a device number. */
function isAnother(folder: string, identity: FolderIdentity | null): boolean {
  if (identity === null) return false;
  const { dev, ino } = folderIdentity(folder);
  return dev === identity.dev && ino !== identity.ino;
}
