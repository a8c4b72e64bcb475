import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../src/client/index.ts";
import { pathsIn } from "../../src/config/index.ts";
import { Config } from "../../src/contract/index.ts";
import { type Daemon, startDaemon } from "../../src/daemon.ts";
import { createFakeDriver, type FakeToolCall } from "../../src/drivers/fake/driver.ts";
import type { Driver } from "../../src/drivers/port.ts";
import { silentLog } from "../../src/log.ts";
import { testPostgres } from "../../src/store/testing/test-postgres.ts";

export interface Scenario {
  readonly count: number;
  readonly isPostgres: boolean;
  /** Called when the parent's agent is about to call `spawn_session`. */
  readonly called: () => void;
  /** Called when the prompt with the child's result has reached the parent's agent. */
  readonly prompted: () => void;
}

/**
 * Runs a whole daemon with in-process agents. A parent repeatedly spawns one child over MCP and ends its
 * turn; then the child reports and the parent is prompted.
 */
export async function spawnAgainAndAgain(scenario: Scenario): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "kinfold-walk-"));
  const server = scenario.isPostgres ? await testPostgres() : null;
  const family = new Family(scenario);
  const daemon = await startDaemon({
    paths: pathsIn(home),
    config: Config.parse({ port: 0, agent: "fake", store: (await server?.url()) ?? "sqlite" }),
    log: silentLog,
    drivers: new Map([["fake", family.driver]]),
    place: { home, env: {} },
    reached: (moment) => {
      if (moment === "settle.committed") family.settled.resolve();
    },
  });
  try {
    await family.live(daemon, scenario.count);
  } finally {
    await daemon.stop();
    await server?.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

class Family {
  readonly driver: Driver;
  /** Resolves when the turn in which the parent called `spawn_session` has ended. */
  settled = Promise.withResolvers<void>();
  #prompted = Promise.withResolvers<void>();
  #parentId = "";

  constructor({ called, prompted }: Scenario) {
    this.driver = createFakeDriver({
      tool: (call) => callTool(call, called),
      gate: async ({ at, sessionId, text }) => {
        if (at !== "begin" || text === null) return;
        // The child waits until its parent's turn has ended, so that their work never interleaves.
        if (sessionId !== this.#parentId) return this.settled.promise;
        if (!text.includes("<child-output")) return;
        prompted();
        this.#prompted.resolve();
      },
    });
  }

  async live({ url, token, store }: Daemon, count: number): Promise<void> {
    const client = connect({ url, token });
    const { session } = await client.create({ prompt: "sim> say ready" });
    this.#parentId = session.id;
    const isIdle = async (): Promise<boolean> =>
      (await client.get({ id: session.id })).session.status === "idle";
    for (let n = 0; n < count; n++) {
      while (!(await isIdle())) await nextCommit(store);
      this.settled = Promise.withResolvers();
      this.#prompted = Promise.withResolvers();
      const input = JSON.stringify({ name: `child-${n}`, prompt: "sim> say done" });
      await client.prompt({ id: session.id, prompt: `sim> tool spawn_session ${input}` });
      await this.#prompted.promise;
    }
    while (!(await isIdle())) await nextCommit(store);
  }
}

/** Resolves at the next commit, or after 100 ms, because the expected commit may already have happened. */
async function nextCommit(store: Daemon["store"]): Promise<void> {
  const committed = Promise.withResolvers<void>();
  const off = store.onCommit(() => committed.resolve());
  const timer = setTimeout(() => committed.resolve(), 100);
  await committed.promise;
  clearTimeout(timer);
  off();
}

async function callTool(call: FakeToolCall, called: () => void): Promise<{ text: string; ok: boolean }> {
  const { mcp, name, input } = call;
  if (mcp === null) throw new Error("The parent's agent was given no tools.");
  const post = async (id: number, method: string, params: object): Promise<string> => {
    const headers = {
      authorization: `Bearer ${mcp.token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": PROTOCOL,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const response = await fetch(mcp.url, { method: "POST", headers, body });
    return await response.text();
  };
  const clientInfo = { name: "walk", version: "1" };
  await post(0, "initialize", { protocolVersion: PROTOCOL, capabilities: {}, clientInfo });
  called();
  const text = await post(1, "tools/call", { name, arguments: input });
  if (!text.includes("session_id")) throw new Error(`No child was spawned: ${text}`);
  return { text, ok: true };
}

const PROTOCOL = "2025-06-18";
