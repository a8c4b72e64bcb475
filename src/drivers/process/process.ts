import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync, realpathSync, statSync } from "node:fs";
import { Socket } from "node:net";
import { constants as osConstants } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../../log.ts";
import { isInside } from "../../system/folder.ts";
import { type DescendantWatch, watchDescendants } from "./descendant-watch.ts";
import { agentEnvironment, findCommand } from "./environment.ts";
import { createGuard, type Guard } from "./guard.ts";
import type { AdmitProcess, AgentExit, OpenFailure, OpenRequest, StopReport } from "../port.ts";
import { identify, readProcess } from "../../system/process-table.ts";
import { descendantsOf, hasBegun, type ProcessTree, stopTree } from "../../system/process-tree.ts";
import { prepareCover } from "./namespaces.ts";
import { chooseSandbox, type Hidden, type Sandbox, sandboxed, type SandboxMode } from "./sandbox.ts";
import type { ProcessIdentity } from "../../system/process.ts";
import { listPids } from "../../system/proc.ts";

interface ProcessSpec extends Pick<OpenRequest, "cwd" | "leaseId" | "onUnmarked"> {
  readonly command: readonly string[];
  readonly env: readonly string[];
  readonly extraEnv?: Readonly<Record<string, string>>;
  /** As in `OpenRequest`. If it is absent, the process is started without a check. */
  readonly admitProcess?: AdmitProcess;
}

type StartResult =
  | { readonly ok: true; readonly process: AgentProcess }
  | { readonly ok: false; readonly reason: OpenFailure; readonly message: string };

/** Starts agent processes so that neither they nor their descendants outlive us. */
export interface ProcessHost {
  start(spec: ProcessSpec): Promise<StartResult>;
}

export interface AgentProcess {
  readonly identity: ProcessIdentity;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when the process has ended. Descendants may still run then, but they are being ended. */
  readonly exited: Promise<AgentExit>;
  descendants(): Promise<ProcessIdentity[]>;
  /** Remembers the processes that run now, so that the agent's helpers do not count as background work. */
  noteBaseline(): void;
  background(since: number): Promise<boolean>;
  /** Remembers the descendants. Called before a cancel: later, a killed command's orphans cannot be found. */
  noteDescendants(): Promise<void>;
  /** Closes the input, which most agents take as a request to exit. Remembers the descendants first. */
  endInput(): Promise<void>;
  /** Sends SIGTERM to the agent. Does nothing in a sandbox that would not pass the signal on. */
  terminate(): Promise<void>;
  /** Kills the whole tree at once. */
  stop(): Promise<StopReport>;
}

interface HostOptions {
  readonly sandbox: SandboxMode;
  readonly log: Log;
  /** Kinfold's home. An agent in a namespace sees only the adapters and its own folders inside this home. */
  readonly home?: string;
}

export function createProcessHost(options: HostOptions): ProcessHost {
  const guard = createGuard(options.log);
  return {
    async start(spec) {
      const sandbox = await chooseSandbox(options.sandbox);
      if (sandbox.kind === "none") return { ok: false, reason: "not_installed", message: sandbox.problem };
      const hidden = hiddenFrom(spec.cwd, options.home);
      if (sandbox.kind === "namespaces" && hidden !== null) prepareCover(hidden.folder);
      return startProcess({ spec, sandbox, guard }, hidden);
    },
  };
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const STDERR_BYTES = 4_096;
const DRAIN_MS = 200;

interface Start {
  readonly spec: ProcessSpec;
  readonly sandbox: Sandbox;
  readonly guard: Guard;
}

async function startProcess(start: Start, hidden: Hidden | null): Promise<StartResult> {
  const { spec, sandbox, guard } = start;
  const problem = folderProblem(spec.cwd);
  if (problem !== null) return { ok: false, reason: "exited", message: problem };
  const env = agentEnvironment(process.env, { leaseId: spec.leaseId, names: spec.env, extra: spec.extraEnv });
  const name = spec.command[0] ?? "";
  const program = findCommand(name, env["PATH"]);
  if (program === null)
    return { ok: false, reason: "not_installed", message: `${name} was not found on the PATH` };
  const command = sandboxed(sandbox, [program, ...spec.command.slice(1)], { cwd: spec.cwd, hidden });

  if (sandbox.kind === "guard") guard.add(spec.leaseId);
  let begun: Begun | null = null;
  const begin = (): Begun => (begun ??= beginProcess(command, env, start));
  const isAdmitted = await admitted(spec, () => begin().process?.identity ?? null).catch(async (error) => {
    await endUnadmitted(begun, start);
    throw error;
  });
  if (!isAdmitted) {
    await endUnadmitted(begun, start);
    return { ok: false, reason: "unwanted", message: "it was stopped before it began" };
  }
  const { process: started, failure } = begin();
  if (started !== null) return { ok: true, process: started };
  guard.release(spec.leaseId);
  return { ok: false, reason: "exited", message: `${name} could not be started: ${await failure}` };
}

interface Begun {
  /** Null if the system created no process; then `failure` has the reason. */
  readonly process: AgentProcess | null;
  readonly failure: Promise<string>;
}

/** Synchronous, so that the handlers that end the process are in place before anything else can run. */
function beginProcess(command: readonly string[], env: Record<string, string>, at: Start): Begun {
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: at.spec.cwd,
    env,
    detached: true,
    shell: false,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const failure = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
  });
  return { process: child.pid === undefined ? null : agentProcess(child, at), failure };
}

async function admitted(spec: ProcessSpec, start: () => ProcessIdentity | null): Promise<boolean> {
  if (spec.admitProcess !== undefined) return spec.admitProcess(start);
  start();
  return true;
}

async function endUnadmitted(begun: Begun | null, { spec, guard }: Start): Promise<void> {
  await begun?.process?.stop();
  guard.release(spec.leaseId);
}

/** Hides Kinfold's home from an agent, except the adapters, sim's sessions and the working folder. */
function hiddenFrom(cwd: string, home: string | undefined): Hidden | null {
  if (home === undefined || !existsSync(home)) return null;
  const folder = realpathSync(home);
  const there = (...names: string[]): string[] =>
    names.map((name) => join(folder, name)).filter((path) => existsSync(path));
  const isWithin = cwd !== folder && isInside(cwd, folder);
  return { folder, readable: there("agents"), writable: [...there("sim"), ...(isWithin ? [cwd] : [])] };
}

function folderProblem(cwd: string): string | null {
  try {
    return statSync(cwd).isDirectory() ? null : `${cwd} is not a folder`;
  } catch {
    return `the folder ${cwd} does not exist`;
  }
}

function agentProcess(child: Child, { spec, sandbox, guard }: Start): AgentProcess {
  const pid = child.pid as number;
  const row = readProcess(pid);
  const identity = row ? identify(row) : { pid, startTime: null, command: spec.command[0] ?? "" };
  const tree: ProcessTree = { leaseId: spec.leaseId, root: identity, seen: new Map() };
  let baseline: ReadonlySet<number> | null = null;
  let ending: Promise<StopReport> | null = null;

  // Ignores a failed write to an agent that has just ended, because the agent's exit is handled separately.
  child.stdin.on("error", () => child.stdin.destroy());
  child.on("error", () => child.stdin.destroy());
  const exited = watchExit(child, sandbox);
  const watch = sandbox.kind === "guard" ? guardDescendants(tree, spec, guard) : null;

  const stop = (): Promise<StopReport> => {
    watch?.end();
    ending ??= stopTree(tree).then(async (left) => {
      if (left.length === 0) guard.release(spec.leaseId);
      if (!left.some((one) => one.pid === pid)) await exited;
      return { left };
    });
    return ending;
  };
  void exited.then(stop);
  const noteDescendants = async (): Promise<void> => watch?.scan();

  return {
    identity,
    stdin: child.stdin,
    stdout: child.stdout,
    exited,
    stop,
    descendants: () => descendantsOf(tree),
    noteBaseline() {
      baseline ??= new Set(listPids());
    },
    background: (since) => hasBegun(tree, since, baseline ?? new Set()),
    noteDescendants,
    async endInput() {
      watch?.scanOften();
      await noteDescendants();
      child.stdin.end();
    },
    async terminate() {
      if (watch === null) return;
      await noteDescendants();
      child.kill("SIGTERM");
    },
  };
}

/** Reports unmarked descendants to the guard and the caller. The guard itself finds only marked processes. */
function guardDescendants(tree: ProcessTree, spec: ProcessSpec, guard: Guard): DescendantWatch {
  return watchDescendants(tree, (processes) => {
    guard.remember(spec.leaseId, processes);
    spec.onUnmarked?.(processes);
  });
}

/** Resolves on exit, not when the pipes close: a descendant may keep the pipes open forever. */
async function watchExit(child: Child, sandbox: Sandbox): Promise<AgentExit> {
  const tail = keepTail(child.stderr);
  const closed = new Promise((resolve) => child.once("close", () => resolve(true)));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.once("exit", (exitCode, exitSignal) => resolve([exitCode, exitSignal]));
  });
  for (
    let read = -1;
    !(await Promise.race([closed, pause(DRAIN_MS, false)]));
    read = bytesRead(child.stdout)
  ) {
    if (child.stdout.readableLength === 0 && bytesRead(child.stdout) === read) break;
  }
  child.stdout.destroy();
  child.stderr.destroy();
  return { ...throughInit(sandbox, code, signal), stderrTail: tail() };
}

function bytesRead(stream: Readable): number {
  return stream instanceof Socket ? stream.bytesRead : 0;
}

/** Restores the signal that killed an agent: a namespace's init reports it as exit code 128 + its number. */
function throughInit(
  sandbox: Sandbox,
  code: number | null,
  signal: string | null,
): Omit<AgentExit, "stderrTail"> {
  if (sandbox.kind === "guard" || code === null || code <= 128) return { code, signal };
  const name = Object.entries(osConstants.signals).find(([, number]) => number === code - 128)?.[0];
  return name === undefined ? { code, signal } : { code: null, signal: name };
}

function keepTail(stream: Readable): () => string {
  let tail = Buffer.alloc(0);
  stream.on("data", (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-STDERR_BYTES);
  });
  stream.on("error", () => stream.destroy());
  return () => tail.toString("utf8").trim();
}
