import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { connect } from "../src/client/index.ts";
import { loadConfig, pathsIn } from "../src/config/index.ts";
import { startDaemon } from "../src/daemon.ts";
import { createFakeDriver } from "../src/drivers/fake/driver.ts";
import type { AgentHandle, Driver, OpenResult } from "../src/drivers/port.ts";
import { openLog } from "../src/log.ts";
import { type Client, eventually, gone, TestHome } from "./support/daemon.ts";
import { callbacksTo, quiet, running } from "./support/family.ts";
import { SANDBOXES, leasesRunning, type Marked, simsOf, stillThere, whyNot } from "./support/processes.ts";
import { script } from "./support/script.ts";
import type { ProcessIdentity } from "../src/system/process.ts";

const RAISED = {
  KINFOLD_LIMITS_CHILDREN_MAX: "100",
  KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000",
  KINFOLD_LIMITS_TURNS_MAX: "100",
  KINFOLD_LIMITS_PROCESSES_MAX: "100",
};
const WORK = script("run sleep 600");

for (const sandbox of SANDBOXES) {
  const skip = await whyNot(sandbox);
  const setup = { env: { ...RAISED, KINFOLD_SANDBOX: sandbox } };

  test(
    `cancel ends a tree of forty agents with a command each, and nothing resumes it (${sandbox})`,
    {
      skip,
    },
    async (t) => {
      const home = new TestHome(setup);
      try {
        const client = await home.start();
        const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: WORK });
        for (const name of ["a", "b", "c"]) {
          const { session } = await client.spawn({ id: root.id, name, prompt: WORK });
          for (let at = 0; at < 12; at += 1)
            await client.spawn({ id: session.id, name: `${name}${at}`, prompt: WORK });
        }
        const before = await allWorking(home, 40);
        assert.equal(simsOf(before).length, 40);

        const asked = performance.now();
        const reply = await client.cancel({ id: root.id });
        const repliedMs = Math.round(performance.now() - asked);
        await gone(() => home.agents().length === 0, 10_000);
        t.diagnostic(`replied after ${repliedMs} ms, gone after ${Math.round(performance.now() - asked)} ms`);
        assert.deepEqual([reply.cancelled, reply.stopped, reply.left], [true, 40, []]);
        assert.deepEqual(home.agents(), [], "none with a marker");
        assert.deepEqual(stillThere(home, before), [], "none by its pid");
        await nothingResumes(home, root.id);
      } finally {
        await home.close();
      }
    },
  );

  test(
    `a daemon killed with ten agents at work leaves no process, and after a start none runs twice (${sandbox})`,
    {
      skip,
    },
    async () => {
      const home = new TestHome(setup);
      try {
        const client = await home.start();
        const ids: string[] = [];
        for (let at = 0; at < 10; at += 1)
          ids.push((await client.create({ cwd: home.work, prompt: WORK })).session.id);
        const before = await allWorking(home, 10);
        await home.kill();
        assert.ok(await gone(() => home.agents().length === 0, 20_000), JSON.stringify(home.agents()));

        const after = await home.start();
        const resumed = await allWorking(home, 10);
        assert.equal(simsOf(resumed).length, 10, "one agent for each session");
        const leases = new Set(before.map((each) => each.lease));
        assert.ok(
          resumed.every((each) => !leases.has(each.lease)),
          "none under a lease of the dead daemon",
        );
        for (const id of ids) {
          const { turns } = await after.turns({ id });
          assert.deepEqual(
            turns.map((turn) => [turn.status, turn.attempt]),
            [["running", 2]],
          );
        }
        await Promise.all(ids.map((id) => after.cancel({ id })));
        assert.ok(await gone(() => home.agents().length === 0, 10_000), JSON.stringify(home.agents()));
      } finally {
        await home.close();
      }
    },
  );
}

async function allWorking(home: TestHome, count: number): Promise<Marked[]> {
  const what = `${count} agents run a command`;
  return eventually(
    what,
    async () => {
      const marked = home.agents();
      return leasesRunning(marked, "sleep 600").size === count ? marked : null;
    },
    60_000,
  );
}

/** Restarts the daemon, runs another session, and checks that the cancelled tree is unchanged. */
async function nothingResumes(home: TestHome, rootId: string): Promise<void> {
  await home.kill();
  const client = await home.start();
  const { session } = await client.create({ cwd: home.work, prompt: script("say after") });
  await quiet(client, session.id);
  assert.ok(simsOf(home.agents()).length <= 1, "only the new session's agent runs");
  const { sessions } = await client.tree({ id: rootId });
  assert.ok(sessions.every((each) => each.status === "ended" && each.outcome === "cancelled"));
  for (const { id } of sessions) {
    const { turns } = await client.turns({ id });
    assert.deepEqual(
      turns.map((turn) => turn.status),
      ["cancelled"],
    );
    assert.deepEqual((await client.inbox({ id })).messages, []);
  }
}

test("processes that could not be stopped are named in the reply, the lease, the event and the callback", async () => {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-test-"));
  const work = mkdtempSync(path.join(tmpdir(), "kinfold-work-"));
  const held = spawn("sleep", ["600"], { stdio: "ignore" });
  const process: ProcessIdentity = { pid: held.pid!, startTime: null, command: "sleep" };
  const { config } = loadConfig({ home, cwd: home, env: { KINFOLD_PORT: "0" } });
  const log = openLog({ level: "error", path: null });
  const drivers = new Map([
    ["fake", createFakeDriver()],
    ["stuck", unstoppable(process)],
  ]);
  const daemon = await startDaemon({ paths: pathsIn(home), config, log, drivers });
  try {
    const client = connect(daemon);
    const { session: root } = await client.create({ cwd: work, agent: "fake", prompt: script("say ready") });
    await quiet(client, root.id);
    const left = { pid: process.pid, what: "sleep" };
    const named = new RegExp(
      `1 process could not be stopped: pid ${process.pid} \\(sleep\\); the user is told`,
    );

    const child = await hanging(client, { id: root.id, name: "child", agent: "stuck" });
    const reply = await client.cancel({ id: child });
    assert.deepEqual(reply.left, [{ sessionId: child, ...left }]);
    assert.deepEqual([reply.stopped, reply.stopping], [1, []]);
    const lease = await daemon.store.read.leases.bySession(child);
    assert.equal(lease?.pid, null);
    assert.deepEqual(
      lease?.descendants.map((each) => each.pid),
      [process.pid],
    );
    const events = await daemon.store.feed.ofTree(root.id, 0, 1000);
    const exit = events.find((event) => event.type === "agent.exited" && event.sessionId === child);
    assert.equal(exit?.text, `could not be stopped: pid ${process.pid} (sleep)`);
    assert.match(await lastTold(client, root.id, 1), named);

    const middle = await hanging(client, { id: root.id, name: "middle", agent: "fake" });
    const below = await hanging(client, { id: middle, name: "below", agent: "stuck" });
    const second = await client.cancel({ id: middle });
    assert.deepEqual(second.left, [{ sessionId: below, ...left }]);
    assert.match(await lastTold(client, root.id, 2), named);
  } finally {
    await daemon.stop();
    held.kill("SIGKILL");
    await once(held, "exit");
    for (const folder of [home, work]) rmSync(folder, { recursive: true, force: true });
  }
});

async function hanging(client: Client, input: { id: string; name: string; agent: string }): Promise<string> {
  const { session } = await client.spawn({ ...input, prompt: script("hang") });
  await running(client, session.id);
  await eventually(
    "its agent has begun",
    async () => (await client.get({ id: session.id })).session.agentSessionId,
  );
  return session.id;
}

async function lastTold(client: Client, id: string, count: number): Promise<string> {
  return eventually(`${count} callbacks have come`, async () => {
    const told = await callbacksTo(client, id);
    return told.length === count ? told.at(-1)!.text : null;
  });
}

/** An agent that ends normally and leaves behind a process that cannot be killed. */
function unstoppable(left: ProcessIdentity): Driver {
  const fake = createFakeDriver({ name: "stuck" });
  return {
    name: fake.name,
    probe: () => fake.probe(),
    async open(request): Promise<OpenResult> {
      const result = await fake.open(request);
      return result.ok ? { ok: true, handle: leaving(result.handle, left) } : result;
    },
  };
}

function leaving(handle: AgentHandle, left: ProcessIdentity): AgentHandle {
  return {
    agentSessionId: handle.agentSessionId,
    agentVersion: handle.agentVersion,
    model: handle.model,
    replay: handle.replay,
    exited: handle.exited,
    prompt: (text) => handle.prompt(text),
    steer: (text) => handle.steer(text),
    cancel: () => handle.cancel(),
    background: (since) => handle.background(since),
    descendants: () => handle.descendants(),
    async stop(graceMs) {
      await handle.stop(graceMs);
      return { left: [left] };
    },
  };
}
