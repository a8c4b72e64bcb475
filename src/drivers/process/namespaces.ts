import { mkdirSync } from "node:fs";
import { join, relative } from "node:path";
import type { Hidden } from "./sandbox.ts";

/** Absolute paths of the programs of util-linux that make the namespaces. */
export interface NamespaceTools {
  readonly unshare: string;
  readonly setpriv: string;
  readonly mount: string;
}

/** The capabilities that unmount a file system, make a device or open a file by its number. */
export const OPENING = [
  "sys_admin",
  "sys_ptrace",
  "sys_module",
  "sys_rawio",
  "sys_boot",
  "mknod",
  "dac_read_search",
] as const;

/** An empty folder of the covered one, on which its cover is put together. */
const COVER = "cover";

export function prepareCover(folder: string): void {
  mkdirSync(join(folder, COVER), { recursive: true, mode: 0o700 });
}

/**
 * Runs a command in PID and mount namespaces of its own, for machines without bubblewrap. The chain:
 *
 * - `setpriv --pdeathsig KILL`, which becomes `unshare`, so that the kernel kills it when the daemon dies;
 * - `unshare --kill-child`, whose only child is killed when it dies;
 * - that child is a shell and the namespace's init: it mounts, runs the command and collects orphans.
 *   When it ends, however that happens, the kernel kills everything in the namespace;
 * - `setpriv` once more, which takes from the command the right to undo the mounts.
 *
 * Network and user stay the same, so our tools are reachable over loopback and files have their owner.
 */
export function insideNamespaces(
  tools: NamespaceTools,
  command: readonly string[],
  { cwd, hidden }: { readonly cwd: string; readonly hidden: Hidden | null },
): string[] {
  const isRoot = process.getuid?.() === 0;
  const dying = [tools.setpriv, "--pdeathsig", "KILL", "--"];
  // A user who is not root may mount only in a user namespace, and only with the capabilities kept over exec.
  const user = isRoot ? [] : ["--user", "--map-current-user", "--keep-caps"];
  const unshared = [tools.unshare, ...user, "--pid", "--mount", "--fork", "--kill-child", "--"];
  const init = ["/bin/sh", "-c", INIT, "kinfold-init", tools.mount, cwd];
  const cover = hidden === null ? [] : coverOf(hidden);
  const bounded = isRoot ? ["--bounding-set", OPENING.map((name) => `-${name}`).join(",")] : [];
  const weaker = [tools.setpriv, "--ambient-caps", "-all", "--inh-caps", "-all", ...bounded, "--"];
  return [...dying, ...unshared, ...init, ...cover, "--", ...weaker, ...command];
}

/** The covered folder, then what stays open of it: `ro` or `rw` and a path inside it. */
function coverOf({ folder, readable, writable }: Hidden): string[] {
  const open = (how: string, paths: readonly string[]): string[] =>
    paths.flatMap((path) => [how, relative(folder, path)]);
  return [folder, ...open("ro", readable), ...open("rw", writable)];
}

/**
 * The init of the namespace. The cover is put together in a folder of the covered one and then moved
 * over it, because what stays open of it could not be reached any more once it is covered. The
 * working folder is entered again afterwards: the one we were started in lies below the cover, and
 * `..` would lead out. Only the command has our standard error: a shell reports on it how its
 * commands were killed.
 */
const INIT = `
mount=$1 cwd=$2
shift 2
"$mount" -n -t proc proc /proc || exit 125
if [ "$1" != -- ]; then
  home=$1 cover=$1/${COVER}
  shift
  "$mount" -n -t tmpfs -o mode=0700 kinfold "$cover" || exit 125
  while [ "$1" != -- ]; do
    mkdir -p "$cover/$2" && "$mount" -n --bind "$home/$2" "$cover/$2" || exit 125
    [ "$1" = rw ] || "$mount" -n -o remount,bind,ro "$cover/$2" || exit 125
    shift 2
  done
  "$mount" -n --move "$cover" "$home" || exit 125
fi
shift
cd "$cwd" || exit 125
exec 3>&2 2>/dev/null
/bin/sh -c 'exec "$@" 2>&3 3>&-' sh "$@"
exit $?
`;
