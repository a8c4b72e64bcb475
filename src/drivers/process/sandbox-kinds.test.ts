import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { silentLog } from "../../log.ts";
import { eventually } from "../driver.spec.ts";
import { findCommand } from "./environment.ts";
import type { AdmitProcess } from "../port.ts";
import { type AgentProcess, createProcessHost } from "./process.ts";
import { identify, readProcess } from "../../system/process-table.ts";
import { killMarked, reaper } from "../../system/process-tree.ts";
import { chooseSandbox, describeSandbox } from "./sandbox.ts";
import type { RememberedProcess } from "../../system/process.ts";
import { bootId } from "../../system/proc.ts";

const OPEN = "the guard closes no folder to commands";
const leases: string[] = [];
const naps: string[] = [];
const folders: string[] = [];

after(async () => {
  await killMarked(new Set(leases));
  for (const pid of naps.flatMap(sleepers)) process.kill(pid, "SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

for (const kind of ["bubblewrap", "namespaces", "guard"] as const) {
  const found = await chooseSandbox(kind);
  const skip = found.kind === "none" ? found.problem : false;
  const isGuard = kind === "guard";

  describe(`in the sandbox of ${kind}`, { skip }, () => {
    it("children without the marker end with an agent that is asked to end", async () => {
      const nap = newNap();
      const agent = await start(`env -i sleep ${nap} & env -i setsid sleep ${nap} & read line; exit 0`);
      await eventually("both run", () => sleepers(nap).length === 2);
      await agent.endInput();
      await agent.exited;
      assert.deepEqual(await agent.stop(), { left: [] });
      assert.deepEqual(sleepers(nap), []);
    });

    it("children without the marker end with an agent that is asked by a signal, or killed", async () => {
      for (const end of ["terminate", "kill"] as const) {
        const nap = newNap();
        const seen: RememberedProcess[] = [];
        const agent = await start(`env -i setsid sleep ${nap} & cat`, (processes) => seen.push(...processes));
        await eventually("it runs", () => sleepers(nap).length === 1);
        const isSeen = (): boolean => !isGuard || seen.some(({ pid }) => pid === sleepers(nap)[0]);
        if (end === "terminate") await agent.terminate();
        else await eventually("it was looked at", isSeen);
        process.kill(agent.identity.pid, "SIGKILL");
        await agent.exited;
        assert.deepEqual(await agent.stop(), { left: [] });
        await eventually("none is left", () => sleepers(nap).length === 0);
      }
    });

    it("a process without the marker that lost its parent while the agent ran still ends", async () => {
      const nap = newNap();
      const seen: RememberedProcess[] = [];
      const agent = await start(`env -i setsid sh -c 'sleep ${nap} & wait' & cat`, (all) =>
        seen.push(...all),
      );
      await eventually("it runs", () => sleepers(nap).length === 1);
      const [pid = 0] = sleepers(nap);
      await eventually("it was looked at", () => !isGuard || seen.some((one) => one.pid === pid));
      const parent = readProcess(pid)?.parentPid ?? 0;
      process.kill(parent, "SIGKILL");
      await eventually("it has another parent", () => readProcess(pid)?.parentPid !== parent);
      assert.deepEqual(await agent.stop(), { left: [] });
      assert.deepEqual(sleepers(nap), []);
    });

    const unseen = isGuard ? "the guard cannot see a process that leaves between two scans" : false;
    it("a process that detaches itself at once ends with the agent", { skip: unseen }, async () => {
      const nap = newNap();
      const agent = await start(`env -i setsid sh -c 'sleep ${nap} & exit 0'; cat`);
      await eventually("it runs", () => sleepers(nap).length === 1);
      assert.ok((await agent.descendants()).some(({ pid }) => pid === sleepers(nap)[0]));
      assert.deepEqual(await agent.stop(), { left: [] });
      assert.deepEqual(sleepers(nap), []);
    });

    it("children without the marker end when the daemon is killed", async () => {
      const nap = newNap();
      const command = `env -i setsid sleep ${nap} & ${isGuard ? ":" : `env -i setsid sh -c 'sleep ${nap} & exit'`}; sleep 600`;
      const daemon = startDaemon(kind, command);
      await eventually("they run", () => sleepers(nap).length === (isGuard ? 1 : 2));
      // Wait until the guard has a list with the unmarked process. A namespace needs no such list: all its
      // processes end with it.
      if (isGuard) await once(daemon.stdout, "data");
      daemon.kill("SIGKILL");
      await once(daemon, "exit");
      await eventually("none is left", () => sleepers(nap).length === 0);
    });

    it("an agent's exit code and standard error are its own, not those of its sandbox", async () => {
      const agent = await start("echo last words >&2; kill -9 $$");
      const { code, signal, stderrTail } = await agent.exited;
      assert.deepEqual([code, signal, stderrTail], [null, "SIGKILL", "last words"]);
    });

    it(
      "Kinfold's home is closed but for its adapters and its own folder",
      { skip: isGuard && OPEN },
      async () => {
        const home = newHome();
        const commands = [
          "cat ../token ../../token",
          `cat ${home}/token; ls ${home}`,
          `umount -l ${home}`,
          `cat ${home}/token`,
          `sh ${home}/agents/adapter.sh`,
          `touch ${home}/agents/planted`,
          "touch work.txt",
          "pwd",
        ];
        const said = await output(commands.join("; "), { home, cwd: join(home, "work") });
        assert.equal(said.includes("secret"), false, said);
        assert.deepEqual(said.trim().split("\n"), [
          "agents",
          "sim",
          "work",
          "adapter runs",
          join(home, "work"),
        ]);
        assert.deepEqual(readdirSync(join(home, "agents")), ["adapter.sh"]);
        assert.deepEqual(readdirSync(join(home, "work")), ["work.txt"]);
      },
    );
  });

  async function start(
    command: string,
    onUnmarked: (processes: readonly RememberedProcess[]) => void = () => undefined,
  ): Promise<AgentProcess> {
    return startWith(createProcessHost({ sandbox: kind, log: silentLog }), command, { cwd: "/", onUnmarked });
  }

  async function output(command: string, { home, cwd }: { home: string; cwd: string }): Promise<string> {
    const agent = await startWith(createProcessHost({ sandbox: kind, log: silentLog, home }), command, {
      cwd,
    });
    let text = "";
    agent.stdout.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
    await agent.exited;
    return text;
  }
}

describe("the sandbox that is described", () => {
  it("is the chosen one, with its limits", async () => {
    const { kind } = await chooseSandbox("auto");
    const report = await describeSandbox("auto");
    assert.equal(report.kind, kind);
    assert.equal(report.problems.length, ["bubblewrap", "namespaces", "guard"].indexOf(kind));
    assert.match(
      (await describeSandbox("guard")).text,
      /misses a process that .* leaves its parent between two scans/,
    );
  });

  it("is namespaces where bwrap is missing and unshare works", async (t) => {
    if (!canUnshare()) return t.skip("unshare does not work here");
    const bin = mkdtempSync(join(tmpdir(), "kinfold-bin-"));
    t.after(() => rmSync(bin, { recursive: true }));
    for (const name of ["unshare", "setpriv", "mount", "readlink"])
      symlinkSync(findCommand(name, process.env["PATH"])!, join(bin, name));
    const said = await inOtherPath(`JSON.stringify(await m.describeSandbox("auto"))`, bin);
    const { kind, problems } = JSON.parse(said) as { kind: string; problems: string[] };
    assert.deepEqual([kind, ...problems], ["namespaces", "bwrap is not installed"]);
  });

  it("is guard where neither bwrap nor unshare is on the PATH, and says why", async () => {
    const said = await inOtherPath(`JSON.stringify(await m.describeSandbox("auto"))`);
    const { kind, problems } = JSON.parse(said) as { kind: string; problems: string[] };
    assert.deepEqual(
      [kind, ...problems],
      ["guard", "bwrap is not installed", "missing programs of util-linux: unshare, setpriv, mount"],
    );
    const named = await inOtherPath(`JSON.stringify(await m.chooseSandbox("namespaces"))`);
    assert.match(named, /"kind":"none","problem":"sandbox is set to namespaces, but /);
  });
});

describe("a process that was started and is not admitted", () => {
  const start = async (admitProcess: AdmitProcess) => {
    const host = createProcessHost({ sandbox: "guard", log: silentLog });
    const command = ["sleep", newNap()];
    return host.start({ command, cwd: "/", leaseId: newLease(), env: [], admitProcess });
  };

  it("is ended if the session no longer wants it", async () => {
    let pid = 0;
    const result = await start(async (begin) => {
      pid = begin()?.pid ?? 0;
      return false;
    });
    assert.deepEqual([result.ok, result.ok || result.reason], [false, "unwanted"]);
    assert.ok(pid > 0);
    assert.equal(readProcess(pid), null);
  });

  it("is ended if the admission fails with an error", async () => {
    let pid = 0;
    const failing = start(async (begin) => {
      pid = begin()?.pid ?? 0;
      throw new Error("the store is away");
    });
    await assert.rejects(failing, /the store is away/);
    assert.ok(pid > 0);
    assert.equal(readProcess(pid), null);
  });
});

describe("a remembered process", () => {
  it("is ended by the next daemon only in the same boot and with the same start time", async () => {
    const leaseId = newLease();
    const child = spawn("sleep", [newNap()], { env: {}, detached: true, stdio: "ignore" });
    const row = readProcess(child.pid ?? 0);
    assert.ok(row);
    const mine = { ...identify(row), boot: bootId() };
    for (const other of [{ boot: "another" }, { boot: null }, { startTime: row.startTime - 1 }]) {
      assert.deepEqual(await reaper.reap([leaseId], [{ ...mine, ...other }]), { killed: [], left: [] });
    }
    const { killed, left } = await reaper.reap([leaseId], [mine]);
    assert.deepEqual([killed.map(({ pid }) => pid), left], [[child.pid], []]);
  });
});

async function startWith(
  host: ReturnType<typeof createProcessHost>,
  command: string,
  at: { cwd: string; onUnmarked?: (processes: readonly RememberedProcess[]) => void },
): Promise<AgentProcess> {
  const result = await host.start({
    command: ["/bin/sh", "-c", command],
    leaseId: newLease(),
    env: [],
    ...at,
  });
  assert.ok(result.ok, result.ok ? "" : result.message);
  return result.process;
}

/** Starts a stand-in for the daemon. It runs an agent and prints a line when an unmarked process appears. */
function startDaemon(sandbox: string, command: string) {
  const program = `
    const { createProcessHost } = await import(${JSON.stringify(new URL("./process.ts", import.meta.url).href)});
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const host = createProcessHost({ sandbox: ${JSON.stringify(sandbox)}, log });
    const onUnmarked = (seen) => seen.length > 0 && process.stdout.write("seen\\n");
    const command = ["/bin/sh", "-c", ${JSON.stringify(command)}];
    await host.start({ command, cwd: "/", leaseId: ${JSON.stringify(newLease())}, env: [], onUnmarked });
    setInterval(() => {}, 1000);`;
  return spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** Runs `unshare` itself, independently of the code that chooses the sandbox. */
function canUnshare(): boolean {
  const user = process.getuid?.() === 0 ? [] : ["--user", "--map-current-user"];
  return spawnSync("unshare", [...user, "--pid", "--mount", "--fork", "true"]).status === 0;
}

async function inOtherPath(expression: string, path = "/nowhere"): Promise<string> {
  const module = JSON.stringify(new URL("./sandbox.ts", import.meta.url).href);
  const program = `const m = await import(${module}); process.stdout.write(${expression});`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: { PATH: path },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
  await once(child, "close");
  return text;
}

function newLease(): string {
  const leaseId = `sandbox-${process.pid}-${leases.length}`;
  leases.push(leaseId);
  return leaseId;
}

/** A unique duration for `sleep`, by which a test recognises a process that has no marker. */
function newNap(): string {
  const nap = `${600 + naps.length}.${process.pid}`;
  naps.push(nap);
  return nap;
}

function sleepers(nap: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids
    .map(Number)
    .filter((pid) => commandLine(pid) === `sleep\0${nap}\0` && readProcess(pid) !== null);
}

/** Returns an empty string if the process has ended. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "kinfold-sandbox-"));
  folders.push(home);
  for (const name of ["agents", "sim", "work"]) mkdirSync(join(home, name));
  writeFileSync(join(home, "token"), "secret\n");
  writeFileSync(join(home, "agents", "adapter.sh"), "echo adapter runs\n");
  return home;
}
