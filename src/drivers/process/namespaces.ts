import { mkdirSync } from "node:fs";
import { join, relative } from "node:path";
import type { Hidden } from "./sandbox.ts";

/** Absolute paths of the util-linux programs. */
export interface NamespaceTools {
  readonly unshare: string;
  readonly setpriv: string;
  readonly mount: string;
}

/**
 * Capabilities with which a process could get around the cover of a hidden folder, for example by unmounting
 * it, creating a device, or opening a file by its handle.
 */
export const OPENING = [
  "sys_admin",
  "sys_ptrace",
  "sys_module",
  "sys_rawio",
  "sys_boot",
  "mknod",
  "dac_read_search",
] as const;

/** An empty folder inside the covered one, in which the cover is assembled. */
const COVER = "cover";

export function prepareCover(folder: string): void {
  mkdirSync(join(folder, COVER), { recursive: true, mode: 0o700 });
}

/**
 * Runs a command in its own PID and mount namespaces, for machines without bubblewrap. The chain:
 *
 * - `setpriv --pdeathsig KILL` execs `unshare`, so that the kernel kills `unshare` when the daemon dies.
 * - `unshare --kill-child` has one child, which is killed when `unshare` dies.
 * - That child is a shell and the namespace's init: it mounts, runs the command and reaps orphans.
 *   When it ends, the kernel kills everything in the namespace.
 * - A second `setpriv` takes away the command's right to undo the mounts.
 *
 * Network and user stay the same, so our tools are reachable over loopback and files keep their owner.
 */
export function insideNamespaces(
  tools: NamespaceTools,
  command: readonly string[],
  { cwd, hidden }: { readonly cwd: string; readonly hidden: Hidden | null },
): string[] {
  const isRoot = process.getuid?.() === 0;
  const dying = [tools.setpriv, "--pdeathsig", "KILL", "--"];
  // Only root can mount without a user namespace. In a user namespace, capabilities must be kept across exec.
  const user = isRoot ? [] : ["--user", "--map-current-user", "--keep-caps"];
  const unshared = [tools.unshare, ...user, "--pid", "--mount", "--fork", "--kill-child", "--"];
  const init = ["/bin/sh", "-c", INIT, "kinfold-init", tools.mount, cwd];
  const cover = hidden === null ? [] : coverOf(hidden);
  const bounded = isRoot ? ["--bounding-set", OPENING.map((name) => `-${name}`).join(",")] : [];
  const weaker = [tools.setpriv, "--ambient-caps", "-all", "--inh-caps", "-all", ...bounded, "--"];
  return [...dying, ...unshared, ...init, ...cover, "--", ...weaker, ...command];
}

/** Returns arguments for `INIT`: the covered folder, then `ro` or `rw` before each accessible path inside. */
function coverOf({ folder, readable, writable }: Hidden): string[] {
  const open = (how: string, paths: readonly string[]): string[] =>
    paths.flatMap((path) => [how, relative(folder, path)]);
  return [folder, ...open("ro", readable), ...open("rw", writable)];
}

/**
 * The script of the namespace's init. It assembles the cover in a folder inside the covered one, because the
 * parts that stay accessible cannot be reached once they are covered. Then it moves the cover over the
 * covered folder. It enters the working folder again, because the shell may still be in the covered one, from
 * where `..` leads to hidden files. Only the command gets our standard error, because the shell would report
 * a killed command there.
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
