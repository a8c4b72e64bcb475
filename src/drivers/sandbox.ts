import { execFile } from "node:child_process";
import { findCommand } from "./environment.ts";

export type SandboxMode = "auto" | "bubblewrap" | "guard";

/** How one agent's processes are held together, so that none outlives the daemon. */
export type Hold =
  | { readonly kind: "bubblewrap"; readonly path: string }
  | { readonly kind: "guard" }
  | { readonly kind: "none"; readonly problem: string };

/**
 * `auto` takes bubblewrap where it really works: it may be installed and still be forbidden to
 * make namespaces. Who asks for bubblewrap by name gets nothing less.
 */
export async function chooseHold(mode: SandboxMode): Promise<Hold> {
  if (mode === "guard") return { kind: "guard" };
  const found = await findBubblewrap();
  if (found.path !== null) return { kind: "bubblewrap", path: found.path };
  if (mode === "auto") return { kind: "guard" };
  return { kind: "none", problem: `sandbox is set to bubblewrap, but ${found.problem}` };
}

/** What an agent must not see, and what it needs of it all the same. */
export interface Hidden {
  readonly folder: string;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
}

/** A PID namespace of its own over the whole file system: one kill ends everything in it. */
export function insideBubblewrap(
  path: string,
  command: readonly string[],
  hidden: Hidden | null = null,
): string[] {
  return [path, ...ARGUMENTS, ...(hidden === null ? [] : hide(hidden)), "--", ...command];
}

function hide({ folder, readable, writable }: Hidden): string[] {
  return [
    "--tmpfs",
    folder,
    ...readable.flatMap((one) => ["--ro-bind", one, one]),
    ...writable.flatMap((one) => ["--bind", one, one]),
  ];
}

const ARGUMENTS = ["--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--die-with-parent"];
const PROBE_MS = 5_000;

type Found = { readonly path: string } | { readonly path: null; readonly problem: string };

let probe: Promise<Found> | null = null;

function findBubblewrap(): Promise<Found> {
  probe ??= probeBubblewrap();
  return probe;
}

async function probeBubblewrap(): Promise<Found> {
  if (process.platform !== "linux") return { path: null, problem: "it exists on Linux only" };
  const path = findCommand("bwrap", process.env["PATH"]);
  if (path === null) return { path: null, problem: "bwrap is not installed" };
  return new Promise((resolve) => {
    const command = [...ARGUMENTS, "--", "/bin/sh", "-c", ":"];
    execFile(path, command, { timeout: PROBE_MS, killSignal: "SIGKILL" }, (error, _, stderr) => {
      const said = stderr.trim().split("\n")[0] || error?.message;
      resolve(error ? { path: null, problem: `bwrap does not work here: ${said}` } : { path });
    });
  });
}
