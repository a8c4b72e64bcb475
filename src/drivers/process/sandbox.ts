import { pidNamespace } from "../../system/proc.ts";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCommand } from "./environment.ts";
import { insideNamespaces, type NamespaceTools, OPENING, prepareCover } from "./namespaces.ts";

export type SandboxMode = "auto" | "bubblewrap" | "namespaces" | "guard";

/** How an agent's processes are kept together so that none outlives the daemon. */
export type Sandbox =
  | { readonly kind: "bubblewrap"; readonly path: string }
  | { readonly kind: "namespaces"; readonly tools: NamespaceTools }
  | { readonly kind: "guard" }
  | { readonly kind: "none"; readonly problem: string };

/**
 * With `auto`, chooses the first sandbox that works here: bubblewrap, the namespaces of `unshare`, the guard.
 * Tests each with a real command, because the kernel may forbid namespaces although the tools are installed.
 * Never replaces a sandbox requested by name with a weaker one.
 */
export async function chooseSandbox(mode: SandboxMode): Promise<Sandbox> {
  return (await choose(mode)).sandbox;
}

export interface SandboxReport {
  readonly kind: Sandbox["kind"];
  /** What the sandbox does and what it cannot do. */
  readonly text: string;
  /** Why the stronger sandboxes are not used. */
  readonly problems: readonly string[];
}

export async function describeSandbox(mode: SandboxMode): Promise<SandboxReport> {
  const { sandbox, problems } = await choose(mode);
  const text = sandbox.kind === "none" ? sandbox.problem : WORDS[sandbox.kind];
  return { kind: sandbox.kind, text, problems };
}

async function choose(mode: SandboxMode): Promise<{ sandbox: Sandbox; problems: string[] }> {
  const problems: string[] = [];
  for (const kind of ["bubblewrap", "namespaces"] as const) {
    if (mode !== "auto" && mode !== kind) continue;
    const found = await probed(kind);
    if (found.sandbox !== null) return { sandbox: found.sandbox, problems };
    problems.push(found.problem);
  }
  if (mode === "auto" || mode === "guard") return { sandbox: { kind: "guard" }, problems };
  const problem = `sandbox is set to ${mode}, but ${problems.join("; ")}`;
  return { sandbox: { kind: "none", problem }, problems: [] };
}

/** A folder that an agent must not see, and the parts of that folder that the agent needs. */
export interface Hidden {
  readonly folder: string;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
}

export function sandboxed(
  sandbox: Sandbox,
  command: readonly string[],
  at: { readonly cwd: string; readonly hidden: Hidden | null },
): string[] {
  if (sandbox.kind === "bubblewrap") return insideBubblewrap(sandbox.path, command, at.hidden);
  if (sandbox.kind === "namespaces") return insideNamespaces(sandbox.tools, command, at);
  return [...command];
}

const WORDS: Readonly<Record<Exclude<Sandbox["kind"], "none">, string>> = {
  bubblewrap:
    "bubblewrap: each agent has its own PID namespace, one kill ends all of its processes (also when the daemon dies), and it cannot see Kinfold's home",
  namespaces:
    "namespaces of unshare: each agent has its own PID namespace, one kill ends all of its processes (also when the daemon dies), and it cannot see Kinfold's home",
  guard:
    "guard: ends every process that carries an agent's marker or was seen below the agent in a scan (twice a second). It misses a process that clears its environment and leaves its parent between two scans. Kinfold's home is closed to an agent's own file tools, but not to the commands that it runs",
};

/** Gives the command its own PID namespace, so that one kill ends everything in it. */
function insideBubblewrap(path: string, command: readonly string[], hidden: Hidden | null): string[] {
  return [path, ...ARGUMENTS, ...(hidden === null ? [] : hide(hidden)), ...capabilities(), "--", ...command];
}

function hide({ folder, readable, writable }: Hidden): string[] {
  return [
    "--tmpfs",
    folder,
    ...readable.flatMap((one) => ["--ro-bind", one, one]),
    ...writable.flatMap((one) => ["--bind", one, one]),
  ];
}

/** Root keeps its capabilities inside bubblewrap, so this drops those that could unhide the folder. */
function capabilities(): string[] {
  if (process.getuid?.() !== 0) return [];
  return OPENING.flatMap((name) => ["--cap-drop", `CAP_${name.toUpperCase()}`]);
}

const ARGUMENTS = ["--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--die-with-parent"];
const PROBE_MS = 5_000;

type Found =
  | { readonly sandbox: Exclude<Sandbox, { kind: "none" | "guard" }> }
  /** `isLate`: the probe timed out, perhaps because the machine is busy. */
  | { readonly sandbox: null; readonly problem: string; readonly isLate?: boolean };

const probes = new Map<"bubblewrap" | "namespaces", Promise<Found>>();

function probed(kind: "bubblewrap" | "namespaces"): Promise<Found> {
  const known = probes.get(kind);
  if (known !== undefined) return known;
  const asked = kind === "bubblewrap" ? probeBubblewrap() : probeNamespaces();
  probes.set(kind, asked);
  // A probe that timed out does not show whether the sandbox works, so the next call probes again.
  const forget = (): boolean => probes.delete(kind);
  asked.then((found) => found.sandbox === null && found.isLate === true && forget(), forget);
  return asked;
}

async function probeBubblewrap(): Promise<Found> {
  if (process.platform !== "linux")
    return { sandbox: null, problem: "bubblewrap is available on Linux only" };
  const path = findCommand("bwrap", process.env["PATH"]);
  if (path === null) return { sandbox: null, problem: "bwrap is not installed" };
  return tried({ kind: "bubblewrap", path }, "bwrap");
}

async function probeNamespaces(): Promise<Found> {
  if (process.platform !== "linux")
    return { sandbox: null, problem: "namespaces are available on Linux only" };
  const names = ["unshare", "setpriv", "mount"] as const;
  const paths = names.map((name) => findCommand(name, process.env["PATH"]));
  const missing = names.filter((_, index) => paths[index] === null);
  if (missing.length > 0)
    return { sandbox: null, problem: `missing programs of util-linux: ${missing.join(", ")}` };
  const [unshare, setpriv, mount] = paths as [string, string, string];
  return tried({ kind: "namespaces", tools: { unshare, setpriv, mount } }, "unshare");
}

/** Tests the sandbox: the command fails if it sees a file in a covered folder or shares our PID namespace. */
async function tried(sandbox: Exclude<Sandbox, { kind: "none" | "guard" }>, name: string): Promise<Found> {
  const folder = await mkdtemp(join(tmpdir(), "kinfold-probe-"));
  try {
    await writeFile(join(folder, "covered"), "");
    prepareCover(folder);
    const hidden = { folder, readable: [], writable: [] };
    // If `readlink` is missing, `own` is empty. That must not be mistaken for another namespace.
    const other = 'own=$(readlink /proc/self/ns/pid) && test -n "$own" && ! test "$own" = "$2"';
    const check = `! test -e "$1/covered" && ${other}`;
    const ours = pidNamespace() ?? "";
    const command = ["/bin/sh", "-c", check, "sh", folder, ours];
    const problem = await failureOf(sandboxed(sandbox, command, { cwd: "/", hidden }));
    if (problem === null) return { sandbox };
    return { sandbox: null, problem: `${name} does not work here: ${problem.text}`, isLate: problem.isLate };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function failureOf([program = "", ...args]: readonly string[]): Promise<Failed | null> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: PROBE_MS, killSignal: "SIGKILL" }, (error, _, stderr) => {
      if (error === null) return resolve(null);
      if (error.killed === true) return resolve({ text: LATE, isLate: true });
      resolve({ text: stderr.trim().split("\n")[0] || error.message, isLate: false });
    });
  });
}

interface Failed {
  readonly text: string;
  readonly isLate: boolean;
}

const LATE = `it did not answer within ${PROBE_MS / 1000} s`;
