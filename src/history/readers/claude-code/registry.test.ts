import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, it } from "node:test";
import { systemProbe } from "../../../system/process-probe.ts";
import { keepsRegistry, readRegistry } from "./registry.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "kinfold-registry-"));
  await mkdir(join(root, "sessions"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const write = (name: string, record: object | string) =>
  writeFile(join(root, "sessions", name), typeof record === "string" ? record : JSON.stringify(record));
const onLinux = process.platform === "linux" ? false : "only Linux says when a process was started";

it(
  "a process is the one in the registry when pid and start are the same, and gone when it has ended",
  { skip: onLinux },
  async () => {
    const agent = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    await once(agent, "spawn");
    try {
      const procStart = systemProbe.startOf(agent.pid as number);
      assert.match(procStart ?? "", /^\d+$/);
      await write("1.json", {
        pid: agent.pid,
        sessionId: "s",
        procStart,
        status: "shell",
        startedAt: 1794770592192,
      });
      const [live] = await readRegistry(root, systemProbe);
      assert.deepEqual([live?.alive, live?.doing, live?.startedAt], [true, "idle", 1794770592192]);
      await write("1.json", { pid: agent.pid, sessionId: "s", procStart: "1", status: "busy" });
      assert.deepEqual(
        (await readRegistry(root, systemProbe)).map(({ alive, doing }) => [alive, doing]),
        [[false, null]],
      );
    } finally {
      agent.kill("SIGKILL");
      await once(agent, "exit");
    }
    await write("1.json", { pid: agent.pid, sessionId: "s", procStart: "1" });
    assert.match((await readRegistry(root, systemProbe))[0]?.how ?? "", /is gone/);
  },
);

it("a process of another container is neither alive nor gone", async () => {
  await write("1.json", {
    pid: process.pid,
    sessionId: "s",
    procStart: "1",
    status: "busy",
    pidDomain: "linux:x:pid:[1]",
  });
  const probe = { ...systemProbe, space: () => "pid:[2]" };
  assert.deepEqual(
    (await readRegistry(root, probe)).map(({ alive }) => alive),
    [null],
  );
});

it("a file that is not a process record is ignored", async () => {
  await write("pid-7.json", { session_id: "s", cwd: "/" });
  await write("2.json", "{");
  await write("3.json", { pid: -1, sessionId: "s" });
  await write("4.json", { pid: "4", sessionId: "s" });
  assert.deepEqual(await readRegistry(root, systemProbe), []);
  assert.deepEqual(await readRegistry(join(root, "nowhere"), systemProbe), []);
});

it("absence from the registry is evidence from version 2.1.139 on", () => {
  assert.deepEqual(["2.1.138", "2.1.139", "2.2.0", "3.0.0", "1.0.200", "", "next"].map(keepsRegistry), [
    false,
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
  assert.equal(keepsRegistry(null), false);
});

it("the process that holds a file open is found", { skip: onLinux }, async () => {
  const path = join(root, "held.jsonl");
  await writeFile(path, "");
  const script = `require("fs").openSync(${JSON.stringify(path)}, "a"); console.log("open"); setInterval(() => {}, 1000)`;
  const holder = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    await once(holder.stdout, "data");
    assert.deepEqual([...(await systemProbe.holders(new Set([path])))], [[path, holder.pid]]);
  } finally {
    holder.kill("SIGKILL");
    await once(holder, "exit");
  }
  assert.deepEqual([...(await systemProbe.holders(new Set([path])))], []);
});
