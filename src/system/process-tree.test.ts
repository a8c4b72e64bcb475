import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { silentLog } from "../log.ts";
import { eventually, marked } from "../drivers/driver.spec.ts";
import { MARKER } from "./process.ts";
import { createProcessHost } from "../drivers/process/process.ts";
import { identify, type ProcessRow, readProcess, scanByPs, scanProcesses } from "./process-table.ts";
import { killMarked, reaper, stopTree } from "./process-tree.ts";
import { chooseSandbox } from "../drivers/process/sandbox.ts";

const started: ChildProcess[] = [];
const leases: string[] = [];

function newLease(): string {
  const leaseId = `tree-${process.pid}-${leases.length}`;
  leases.push(leaseId);
  return leaseId;
}

function run(command: string, leaseId: string, detached = true): ChildProcess {
  const env = { PATH: process.env["PATH"], [MARKER]: leaseId };
  const child = spawn("/bin/sh", ["-c", command], { env, detached, stdio: "ignore" });
  started.push(child);
  return child;
}

function rowOf(child: ChildProcess): ProcessRow {
  const row = readProcess(child.pid as number);
  assert.ok(row);
  return row;
}

after(async () => {
  for (const child of started) child.kill("SIGKILL");
  const { left } = await killMarked(new Set(leases));
  assert.deepEqual(left, []);
});

describe("the marker", () => {
  it("finds a process that has left its session and its parent", async () => {
    const leaseId = newLease();
    const child = run("setsid sleep 600 & exit 0", leaseId);
    await once(child, "exit");
    await eventually("the orphan is found", async () => (await marked(leaseId)).length === 1);
    const { killed, left } = await reaper.reap([leaseId]);
    assert.deepEqual([killed.length, left.length], [1, 0]);
    assert.deepEqual(await marked(leaseId), []);
  });

  it("of another lease is left alone", async () => {
    const [mine, other] = [newLease(), newLease()];
    const child = run("sleep 600", other);
    await eventually("it runs", async () => (await marked(other)).length >= 1);
    assert.deepEqual(await killMarked(new Set([mine])), { killed: [], left: [] });
    assert.notEqual(readProcess(child.pid as number), null);
    await killMarked(new Set([other]));
    assert.equal(readProcess(child.pid as number), null);
  });
});

describe("stopping a tree", () => {
  it("also ends a process that has dropped the marker but is still below the agent", async () => {
    const leaseId = newLease();
    const child = run(`env -i /bin/sh -c 'sleep 600; true'; true`, leaseId);
    const root = identify(rowOf(child));
    const tree = { leaseId, root, seen: new Map() };
    const bare = await clean(child);
    assert.deepEqual(await stopTree(tree), []);
    assert.equal(readProcess(bare), null);
  });

  it("never signals a pid with another start time", async () => {
    const child = run("sleep 600", newLease());
    const row = rowOf(child);
    const stranger = { ...identify(row), startTime: row.startTime - 1 };
    assert.deepEqual(await stopTree({ leaseId: newLease(), root: stranger, seen: new Map() }), []);
    assert.equal(rowOf(child).startTime, row.startTime);
    child.kill("SIGKILL");
  });

  it("shares its scans with every other stop", async () => {
    const first = scanProcesses();
    const [second, third] = [scanProcesses(), scanProcesses()];
    assert.notEqual(first, second, "a scan that has begun may have missed what came since");
    assert.equal(second, third);
    await Promise.all([first, second]);
  });

  it("ends forty agents at once, each with a command in a session of its own", async () => {
    const host = createProcessHost({ sandbox: "auto", log: silentLog });
    const forty = Array.from({ length: 40 }, newLease);
    const command = ["/bin/sh", "-c", "setsid sleep 600 & wait"];
    const agents = await Promise.all(
      forty.map(async (leaseId) => {
        const result = await host.start({ command, cwd: "/", leaseId, env: [] });
        assert.ok(result.ok);
        return result.process;
      }),
    );
    const reports = await Promise.all(agents.map((agent) => agent.stop()));
    assert.ok(reports.every((report) => report.left.length === 0));
    assert.equal((await killMarked(new Set(forty))).killed.length, 0);
  });
});

describe("the process table", () => {
  it("read by ps has the same parents, times and markers", async () => {
    const leaseId = newLease();
    const child = run("sleep 600; true", leaseId);
    await eventually("it runs", async () => (await marked(leaseId)).length === 2);
    const byPs = (await scanByPs()).get(child.pid as number);
    assert.equal(byPs?.parentPid, process.pid);
    assert.equal(byPs?.leaseId, leaseId);
    assert.ok(Math.abs((byPs?.startTime ?? 0) * 1000 - Date.now()) < 60_000);
    await killMarked(new Set([leaseId]));
  });
});

for (const kind of ["bubblewrap", "namespaces", "guard"] as const) {
  describe(`held by ${kind}`, () => {
    it("an agent and its commands die with a daemon that is killed", async (t) => {
      const found = await chooseSandbox(kind);
      if (found.kind === "none") return t.skip(found.problem);
      const leaseId = newLease();
      const parent = startDaemon(kind, leaseId);
      await once(parent.stdout as NodeJS.ReadableStream, "data");
      await eventually("the command runs", async () => (await commandsOf(leaseId)).includes("sleep"));
      parent.kill("SIGKILL");
      await once(parent, "exit");
      await eventually("nothing is left", async () => (await marked(leaseId)).length === 0);
    });
  });
}

describe("the guard", () => {
  it("is restarted when it is killed, and still guards", async () => {
    const leaseId = newLease();
    const parent = startDaemon("guard", leaseId);
    await once(parent.stdout as NodeJS.ReadableStream, "data");
    const guards = async () =>
      [...(await scanProcesses()).values()].filter((row) => isGuardOf(row, parent.pid));
    await eventually("there is a guard", async () => (await guards()).length === 1);
    const [first] = await guards();
    process.kill(first?.pid as number, "SIGKILL");
    await eventually("there is another", async () => {
      const [now] = await guards();
      return now !== undefined && now.pid !== first?.pid;
    });
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await eventually("nothing is left", async () => (await marked(leaseId)).length === 0);
  });
});

/** Starts a process that runs an agent as the daemon does, and then waits to be killed. */
function startDaemon(sandbox: string, leaseId: string): ChildProcess {
  const program = `
    const { createProcessHost } = await import(${JSON.stringify(new URL("../drivers/process/process.ts", import.meta.url).href)});
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const host = createProcessHost({ sandbox: ${JSON.stringify(sandbox)}, log });
    const command = ["/bin/sh", "-c", "setsid sleep 600 & sleep 601"];
    const result = await host.start({ command, cwd: "/", leaseId: ${JSON.stringify(leaseId)}, env: [] });
    process.stdout.write(JSON.stringify(result.ok));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  return child;
}

async function commandsOf(leaseId: string): Promise<string[]> {
  const pids = await marked(leaseId);
  return pids.map((pid) => readProcess(pid)?.name ?? "");
}

function isGuardOf(row: ProcessRow, parentPid: number | undefined): boolean {
  return row.parentPid === parentPid && identify(row).command.includes("guard-process");
}

/** Returns the pid of the process that `child` started with an empty environment. */
async function clean(child: ChildProcess): Promise<number> {
  let pid = 0;
  await eventually("the bare command runs", async () => {
    const rows = [...(await scanProcesses()).values()];
    pid = rows.find((row) => row.parentPid === child.pid && row.leaseId === null)?.pid ?? 0;
    if (pid === 0) await pause(5);
    return pid !== 0;
  });
  return pid;
}
