import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Permission } from "../../contract/index.ts";
import { silentLog } from "../../log.ts";
import { marked, type OpenOptions, prepare } from "../driver.spec.ts";
import type { AdmitProcess, AgentHandle, Driver, OpenResult } from "../port.ts";
import { createProcessHost } from "../process/process.ts";
import type { Dialect } from "./dialect.ts";
import { createAcpDriver } from "./driver.ts";

let folder: string;
let script: string;
const host = createProcessHost({ sandbox: "auto", log: silentLog });

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kinfold-dialect-"));
  script = join(folder, "agent.mjs");
  await writeFile(script, AGENT);
});
after(() => rm(folder, { recursive: true, force: true }));

/**
 * An agent that has modes and accepts a second prompt. Started as `late`, it finishes its replay late;
 * started as `deaf`, it does not answer its first `session/load`.
 */
const AGENT = `
import { createInterface } from "node:readline";
import { existsSync, writeFileSync } from "node:fs";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const tell = (update) => send({ method: "session/update", params: { sessionId: "s", update } });
const say = (text) => tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
const heard = (text) => tell({ sessionUpdate: "user_message_chunk", content: { type: "text", text } });
const modes = { currentModeId: "loose", availableModes: [{ id: "loose", name: "L" }, { id: "strict", name: "S" }] };
const habit = process.argv[2];
let mode = "loose";
let running = [];
let asked = null;
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (result && id === asked) {
    say(result.outcome.optionId);
    return send({ id: running.shift(), result: { stopReason: "end_turn" } });
  }
  if (method === "initialize")
    return send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
  if (method === "session/new") return send({ id, result: { sessionId: "s", modes } });
  if (method === "session/set_mode") {
    mode = params.modeId;
    return send({ id, result: {} });
  }
  if (method === "session/load") {
    const mark = process.argv[3];
    if (habit === "deaf" && !existsSync(mark)) return writeFileSync(mark, "");
    heard("first");
    if (habit === "late") setTimeout(() => heard("second"), 100);
    return send({ id, result: { modes } });
  }
  if (method !== "session/prompt") return;
  const text = params.prompt[0].text;
  if (text === "mode") {
    say(mode);
    return send({ id, result: { stopReason: "end_turn" } });
  }
  if (text === "noise") {
    say("[NOISE]");
    say("sound");
    return send({ id, result: { stopReason: "end_turn" } });
  }
  running.push(id);
  if (text === "may I") {
    asked = 900;
    const options = [{ optionId: "yes", name: "Y", kind: "allow_once" }, { optionId: "no", name: "N", kind: "reject_once" }];
    const toolCall = { toolCallId: "c", title: "touch x", kind: "execute" };
    return send({ id: asked, method: "session/request_permission", params: { sessionId: "s", toolCall, options } });
  }
  if (running.length === 1) return say("begun");
  const [old, next] = running.splice(0);
  send({ id: old, result: { stopReason: habit === "restart" ? "cancelled" : "end_turn" } });
  say("second: " + text);
  send({ id: next, result: { stopReason: "end_turn" } });
});
`;

function driverOf(dialect: Dialect, ...words: string[]): Driver {
  const command = [process.execPath, script, ...words];
  return createAcpDriver({ name: "odd", title: "Odd", command, env: [], dialect, host, log: silentLog });
}

interface Talk {
  readonly handle: AgentHandle;
  readonly texts: () => string[];
  readonly said: (text: string) => Promise<unknown>;
  readonly leaseId: string;
}

async function open(driver: Driver, options: OpenOptions & { permission?: Permission } = {}) {
  const { request, ...rest } = prepare(folder, options);
  const result: OpenResult = await driver.open({
    ...request,
    permission: options.permission ?? "workspace",
    admitProcess: async (start) => start() !== null,
  });
  return { result, ...rest };
}

async function talk(driver: Driver, options: Parameters<typeof open>[1] = {}): Promise<Talk> {
  const { result, ...rest } = await open(driver, options);
  assert.ok(result.ok, result.ok ? "" : result.message);
  return { ...rest, handle: result.handle };
}

describe("a mode", () => {
  const modes = { "read-only": ["strict"], ask: ["strict"], workspace: ["best", "strict"], full: ["loose"] };

  it("is the first of its names that the agent offers", async () => {
    const { handle, texts } = await talk(driverOf({ modes }));
    await handle.prompt("mode");
    assert.deepEqual(texts(), ["strict"]);
    await handle.stop(1_000);
  });

  it("that the agent does not offer prevents the session, and the reason lists the offered modes", async () => {
    const { result, leaseId } = await open(driverOf({ modes: { ...modes, workspace: ["tight"] } }));
    assert.ok(!result.ok);
    assert.match(result.message, /none of the modes tight, only: loose, strict/);
    assert.deepEqual(await marked(leaseId), []);
  });

  it("of full allows every request, and a read-only mode that asks denies every request", async () => {
    const dialect: Dialect = { answers: { full: "allow", "read-only": "deny" } };
    const answers: string[] = [];
    for (const permission of ["full", "read-only", "workspace"] as const) {
      const answer = permission === "full" ? ("deny" as const) : ("allow" as const);
      const { handle, texts } = await talk(driverOf(dialect), {
        permission,
        answer: () => ({ kind: answer }),
      });
      await handle.prompt("may I");
      answers.push(...texts());
      await handle.stop(1_000);
    }
    assert.deepEqual(answers, ["yes", "no", "yes"]);
  });
});

describe("a second prompt", () => {
  for (const [secondPrompt, outcome] of [
    ["queue", "queued"],
    ["restart", "restarted"],
  ] as const) {
    it(`that the agent answers with ${secondPrompt} belongs to the same turn, which ends with it`, async () => {
      const { handle, texts, said } = await talk(driverOf({ secondPrompt }, secondPrompt));
      const ending = handle.prompt("first");
      await said("begun");
      assert.equal(await handle.steer("more"), outcome);
      assert.equal((await ending).stopReason, "end_turn");
      assert.deepEqual(texts(), ["begun", "second: more"]);
      assert.equal(await handle.steer("too late"), "refused");
      await handle.stop(1_000);
    });
  }
});

describe("a load", () => {
  it("that sends more after its answer is complete when the agent is quiet", async () => {
    const driver = driverOf({ load: { replayQuietMs: 1_000 } }, "late");
    const { handle } = await talk(driver, { load: "s" });
    assert.deepEqual(handle.replay?.userTexts.join(" ").match(/first|second/g), ["first", "second"]);
    await handle.stop(1_000);
  });

  it("that is not answered is retried in a new process, at most as often as allowed", async () => {
    const mark = join(folder, "deaf");
    const habit = { limitMs: 300, tries: 2 };
    const { handle, leaseId } = await talk(driverOf({ load: habit }, "deaf", mark), { load: "s" });
    assert.ok(existsSync(mark));
    assert.deepEqual(handle.replay?.userTexts, ["first"]);
    await handle.stop(1_000);
    assert.deepEqual(await marked(leaseId), []);
    const once = await open(driverOf({ load: { ...habit, tries: 1 } }, "deaf", join(folder, "deafer")), {
      load: "s",
    });
    assert.deepEqual(!once.result.ok && once.result.reason, "load_failed");
  });

  it("that must wait ends early when the agent is ended", async () => {
    const driver = driverOf({ load: { waitMs: () => 60_000, waitMaxMs: 60_000 } });
    const { request, leaseId } = prepare(folder, { load: "s" });
    const { promise: started, resolve } = Promise.withResolvers<void>();
    const admitProcess: AdmitProcess = async (start) => {
      resolve();
      return start() !== null;
    };
    const opening = driver.open({ ...request, admitProcess });
    await started;
    const { killMarked } = await import("../../system/process-tree.ts");
    while ((await marked(leaseId)).length > 0) await killMarked(new Set([leaseId]));
    assert.equal((await opening).ok, false);
  });
});

it("updates that are not part of the conversation are dropped", async () => {
  const isNoise: Dialect["isNoise"] = (update) =>
    update.sessionUpdate === "agent_message_chunk" &&
    update.content.type === "text" &&
    update.content.text.startsWith("[NOISE]");
  const { handle, texts } = await talk(driverOf({ isNoise }));
  await handle.prompt("noise");
  assert.deepEqual(texts(), ["sound"]);
  await handle.stop(1_000);
});

it("an agent that cannot be started says why, and no process is started", async () => {
  const { result } = await open(driverOf({ launch: () => ({ ok: false, problem: "there is no adapter" }) }));
  assert.deepEqual(!result.ok && [result.reason, result.message], ["not_installed", "there is no adapter"]);
});
