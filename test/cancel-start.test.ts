import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { connect } from "../src/client/index.ts";
import { loadConfig, pathsIn } from "../src/config/index.ts";
import { startDaemon } from "../src/daemon.ts";
import type { AdmitProcess, Driver } from "../src/drivers/port.ts";
import { createDrivers } from "../src/drivers/registry.ts";
import { openLog } from "../src/log.ts";
import { type Client, eventually, gone, TestHome } from "./support/daemon.ts";
import { running } from "./support/family.ts";
import { script } from "./support/script.ts";

interface Window {
  /** Called between the claim of a turn and the start of its process. */
  readonly beforeStart?: (client: Client, sessionId: string) => Promise<void>;
  /** Called when the process exists, before anything is sent to its agent. */
  readonly afterStart?: (client: Client, sessionId: string) => Promise<void>;
}

/**
 * Runs a whole daemon whose sim agents call these hooks around their start; `starts` counts their processes.
 */
async function inWindow(
  window: Window,
  work: (at: {
    client: Client;
    work: string;
    starts: () => number;
    /** Resolves to the number of process starts that the feed reports. */
    told: (rootId: string) => Promise<number>;
  }) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-test-"));
  const folder = mkdtempSync(path.join(tmpdir(), "kinfold-work-"));
  const { config } = loadConfig({ home, cwd: home, env: { KINFOLD_PORT: "0" } });
  const log = openLog({ level: "error", path: null });
  const paths = pathsIn(home);
  const { sandbox } = config;
  const sim = createDrivers({ config, simDir: paths.sim, home, sandbox, log }).get("sim") as Driver;
  let starts = 0;
  const drivers = new Map<string, Driver>();
  const daemon = await startDaemon({ paths, config, log, drivers: drivers.set("sim", held()) });
  const client = connect(daemon);

  function held(): Driver {
    return {
      name: sim.name,
      probe: () => sim.probe(),
      open(request) {
        const admitProcess: AdmitProcess = async (start) => {
          await window.beforeStart?.(client, request.sessionId);
          const isAdmitted = await request.admitProcess(() => {
            starts += 1;
            return start();
          });
          await window.afterStart?.(client, request.sessionId);
          return isAdmitted;
        };
        return sim.open({ ...request, admitProcess });
      },
    };
  }

  try {
    const told = async (rootId: string): Promise<number> => {
      const events = await daemon.store.feed.ofTree(rootId, 0, 1000);
      return events.filter((event) => event.type === "agent.started").length;
    };
    await work({ client, work: folder, starts: () => starts, told });
  } finally {
    await daemon.stop();
    for (const each of [home, folder]) rmSync(each, { recursive: true, force: true });
  }
}

/**
 * Begins a cancel and resolves when its tombstone is committed. Waiting for the cancel's reply would
 * deadlock: the daemon replies only after the start, and the start waits for this hook.
 */
function burying(replies: Promise<unknown>[]): NonNullable<Window["beforeStart"]> {
  return async (client, id) => {
    replies.push(client.cancel({ id }));
    await eventually("it has ended", async () => {
      const { session } = await client.get({ id });
      return session.status === "ended" || null;
    });
  };
}

test("no agent process is started after a cancel that came between claim and start", async () => {
  const replies: Promise<unknown>[] = [];
  await inWindow({ beforeStart: burying(replies) }, async ({ client, work, starts, told }) => {
    const { session } = await client.create({ cwd: work, prompt: script("say never") });
    await eventually("it was cancelled", async () => replies.length > 0 || null);
    const [reply] = (await Promise.all(replies)) as { left: unknown[]; stopping: unknown[] }[];
    assert.deepEqual([reply?.left, reply?.stopping], [[], []]);
    assert.equal(starts(), 0);
    const { turns } = await client.turns({ id: session.id });
    assert.deepEqual(
      turns.map((turn) => turn.status),
      ["cancelled"],
    );
    assert.equal(await told(session.id), 0);
  });
});

test("a process that was being started when the cancel came is ended before the reply", async () => {
  const replies: Promise<unknown>[] = [];
  await inWindow({ afterStart: burying(replies) }, async ({ client, work, starts }) => {
    const { session } = await client.create({ cwd: work, prompt: script("say never") });
    await eventually("it was cancelled", async () => replies.length > 0 || null);
    const [reply] = (await Promise.all(replies)) as { left: unknown[]; stopping: unknown[] }[];
    assert.deepEqual([reply?.left, reply?.stopping], [[], []]);
    assert.equal(starts(), 1);
    const { text } = await client.transcript({ id: session.id });
    assert.equal(text.includes("never\n\nnever"), false);
    assert.equal((await client.get({ id: session.id })).session.outcome, "cancelled");
  });
});

test("a daemon killed right after a cancel leaves no process, and the next one starts none", async () => {
  const home = new TestHome();
  try {
    const client = await home.start({ crashAt: { moment: "cancel.committed" } });
    const { session } = await client.create({ cwd: home.work, prompt: script("run sleep 600") });
    await running(client, session.id);
    // The daemon dies during the call.
    await client.cancel({ id: session.id }).catch(() => null);
    await home.ended();
    const after = await home.start();
    await eventually("its turn has settled", async () => {
      const { turns } = await after.turns({ id: session.id });
      return turns.every((turn) => turn.status === "cancelled") || null;
    });
    assert.ok(await gone(() => home.agents().length === 0, 20_000));
  } finally {
    await home.close();
  }
});

test("a daemon killed between claim and start leaves a turn that a cancel ends", async () => {
  const home = new TestHome();
  try {
    const client = await home.start({ crashAt: { moment: "process.starting" } });
    const created = client.create({ cwd: home.work, name: "late", prompt: script("run sleep 600") });
    // The daemon dies during the call.
    await created.catch(() => null);
    await home.ended();
    assert.deepEqual(home.agents(), []);
    const after = await home.start();
    const reply = await after.cancel({ id: "late" });
    assert.deepEqual([reply.left, reply.stopping], [[], []]);
    assert.ok(await gone(() => home.agents().length === 0, 20_000));
  } finally {
    await home.close();
  }
});
