import { type ChildProcess, spawn } from "node:child_process";
import { getCompileCacheDir } from "node:module";
import { Socket } from "node:net";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Log } from "../../log.ts";
import type { RememberedProcess } from "../../system/process.ts";

export interface Guard {
  /** Called before a process is created. If the daemon dies, the guard kills processes with this lease. */
  add(leaseId: string): void;
  /** Replaces the lease's list of processes without the marker. The guard kills these too. */
  remember(leaseId: string, processes: readonly RememberedProcess[]): void;
  release(leaseId: string): void;
}

/**
 * One guard process serves all agents of a daemon. It starts with the first agent, is restarted if it is
 * killed, and ends a few seconds after the last agent is released.
 */
export function createGuard(log: Log): Guard {
  const guarded = new Map<string, readonly RememberedProcess[]>();
  let child: ChildProcess | null = null;
  let idle: NodeJS.Timeout | null = null;

  const start = (): ChildProcess => {
    const started = spawnGuard([...guarded.keys()]);
    for (const [leaseId, processes] of guarded) write(started, rememberLine(leaseId, processes));
    started.once("error", (error) => log.error({ error: error.message }, "guard process failed to start"));
    started.once("exit", () => {
      if (child !== started) return;
      child = null;
      if (guarded.size === 0) return;
      log.warn({ guarded: guarded.size }, "guard process was killed; restarting it");
      child = start();
    });
    return started;
  };
  const send = (line: string): void => {
    if (child !== null) write(child, line);
  };
  const endIdle = (): void => {
    const leaving = child;
    child = null;
    leaving?.stdin?.end();
  };

  return {
    add(leaseId) {
      if (idle) clearTimeout(idle);
      guarded.set(leaseId, []);
      if (child === null) child = start();
      else send(`add ${leaseId}`);
    },
    remember(leaseId, processes) {
      if (!guarded.has(leaseId)) return;
      guarded.set(leaseId, processes);
      send(rememberLine(leaseId, processes));
    },
    release(leaseId) {
      if (!guarded.delete(leaseId)) return;
      send(`release ${leaseId}`);
      if (guarded.size === 0) idle = setTimeout(endIdle, IDLE_MS).unref();
    },
  };
}

const IDLE_MS = 5_000;

function write(child: ChildProcess, line: string): void {
  child.stdin?.write(`${line}\n`);
}

function rememberLine(leaseId: string, processes: readonly RememberedProcess[]): string {
  return `remember ${leaseId} ${JSON.stringify(processes)}`;
}

/** Passes the leases as arguments, so the guard has them even if the daemon dies before it writes to it. */
function spawnGuard(guarded: readonly string[]): ChildProcess {
  const path = fileURLToPath(new URL(`./guard-process${extname(import.meta.url)}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...guarded], {
    cwd: "/",
    detached: true,
    env: { PATH: process.env["PATH"] ?? "", NODE_COMPILE_CACHE: getCompileCacheDir() ?? "" },
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Ignores a failed write to a guard that has just ended: the guard's exit has its own handler.
  child.stdin.on("error", () => child.stdin.destroy());
  child.unref();
  if (child.stdin instanceof Socket) child.stdin.unref();
  return child;
}
