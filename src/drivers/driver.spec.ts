import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { slowness } from "../../scripts/slowness.ts";
import { after, before, describe, it } from "node:test";
import type { AgentAnswer, AgentHandle, AgentRequest, AgentUpdate, Driver, OpenRequest } from "./port.ts";
import { scanProcesses } from "../system/process-table.ts";
import { listPids } from "../system/proc.ts";

/** A driver for the conformance suite, which sends it scripts in the sim agent's language. */
export interface DriverUnderTest {
  readonly driver: Driver;
  readonly cwd: string;
  /** The reason to skip the cases about processes, or false to run them. */
  readonly noProcesses: string | false;
  readonly end: () => Promise<void>;
}

/** An open agent whose updates can be waited for. */
export interface Opened {
  readonly handle: AgentHandle;
  readonly leaseId: string;
  readonly updates: AgentUpdate[];
  readonly requests: AgentRequest[];
  readonly texts: () => string[];
  /** Resolves with the first matching update, past or future. */
  readonly until: (fits: (update: AgentUpdate) => boolean) => Promise<AgentUpdate>;
  readonly said: (text: string) => Promise<AgentUpdate>;
}

export type OpenOptions = Partial<Pick<OpenRequest, "load" | "fork" | "mcp" | "startMs" | "model">> & {
  readonly answer?: (request: AgentRequest) => Promise<AgentAnswer> | AgentAnswer;
};

let lastLease = 0;

/** Builds the request with which a test opens an agent, and records the agent's updates and requests. */
export function prepare(cwd: string, options: OpenOptions = {}) {
  lastLease += 1;
  const leaseId = `spec-${process.pid}-${lastLease}`;
  const updates: AgentUpdate[] = [];
  const requests: AgentRequest[] = [];
  const waiting = new Set<(update: AgentUpdate) => void>();
  const request: OpenRequest = {
    sessionId: `session-${lastLease}`,
    leaseId,
    cwd,
    model: options.model ?? null,
    permission: "workspace",
    tools: null,
    notTools: [],
    servers: null,
    mcp: options.mcp ?? null,
    load: options.load ?? null,
    fork: options.fork ?? null,
    startMs: options.startMs ?? 30_000,
    onUpdate(update) {
      updates.push(update);
      for (const wake of waiting) wake(update);
    },
    async onRequest(asked) {
      requests.push(asked);
      return options.answer ? options.answer(asked) : { kind: "deny" };
    },
    admitProcess: async (start) => {
      assert.equal(updates.length, 0, "the process is asked for before it says anything");
      return start() !== null;
    },
  };
  const until = (fits: (update: AgentUpdate) => boolean): Promise<AgentUpdate> => {
    const past = updates.find(fits);
    if (past) return Promise.resolve(past);
    return new Promise((resolve) => {
      const wake = (update: AgentUpdate): void => {
        if (!fits(update)) return;
        waiting.delete(wake);
        resolve(update);
      };
      waiting.add(wake);
    });
  };
  const said = (text: string) => until((update) => update.kind === "fragment" && update.text === text);
  const texts = () => updates.flatMap((update) => (update.kind === "text" ? [update.text] : []));
  return { request, leaseId, updates, requests, until, said, texts };
}

export async function open(under: DriverUnderTest, options: OpenOptions = {}): Promise<Opened> {
  const { request, ...rest } = prepare(under.cwd, options);
  const result = await under.driver.open(request);
  assert.ok(result.ok, result.ok ? "" : `${result.reason}: ${result.message}`);
  return { ...rest, handle: result.handle };
}

export async function marked(leaseId: string): Promise<number[]> {
  const rows = [...(await scanProcesses()).values()];
  return rows.filter((row) => row.leaseId === leaseId).map(({ pid }) => pid);
}

/** Polls until `isSo` holds, because the operating system makes some changes with a delay. */
export async function eventually(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const limit = performance.now() + 20_000 * slowness();
  while (!(await isSo())) {
    assert.ok(performance.now() < limit, `never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The conformance suite of the driver port. Every driver must pass it. */
export function driverSuite(name: string, make: () => Promise<DriverUnderTest>): void {
  describe(`driver ${name}`, () => {
    let under: DriverUnderTest;
    before(async () => {
      under = await make();
    });
    after(() => under.end());

    conversationCases(() => under);
    endingCases(() => under);
    loadCases(() => under);
    processCases(() => under);
  });
}

function conversationCases(under: () => DriverUnderTest): void {
  it("a probe describes the agent without starting it", async () => {
    const agent = await under().driver.probe();
    assert.equal(agent.installed, true);
    assert.equal(agent.problem, null);
    assert.equal(agent.name, under().driver.name);
  });

  it("a prompt is answered, and its last update comes before its end", async () => {
    const agent = await open(under());
    const end = await agent.handle.prompt("hello");
    assert.deepEqual(agent.texts(), ["sim: hello"]);
    assert.deepEqual([end.stopReason, end.error, end.exit], ["end_turn", null, null]);
    assert.deepEqual((await agent.handle.stop(2_000)).left, []);
  });

  it("updates arrive in the order in which the agent sent them", async () => {
    const agent = await open(under());
    await agent.handle.prompt("sim> think a\nsim> say b\nsim> plan c; d\nsim> run true\nsim> say e");
    const kinds = agent.updates.filter((update) => update.kind !== "fragment").map((update) => update.kind);
    assert.deepEqual(kinds, ["thought", "text", "plan", "toolCall", "toolResult", "text"]);
    await agent.handle.stop(2_000);
  });

  it("text is passed on at once as a fragment and once more when the message has ended", async () => {
    const agent = await open(under());
    const ending = agent.handle.prompt("sim> say early\nsim> hang");
    await agent.said("early");
    agent.handle.cancel();
    await ending;
    assert.deepEqual(agent.texts(), ["early"]);
    await agent.handle.stop(2_000);
  });

  it("a command is reported with what it was and how it exited", async () => {
    const agent = await open(under());
    await agent.handle.prompt("sim> run true");
    const result = agent.updates.find((update) => update.kind === "toolResult");
    assert.deepEqual([result?.command, result?.exitCode, result?.ok, result?.ours], ["true", 0, true, false]);
    await agent.handle.stop(2_000);
  });

  it("a written file is reported with the lines it gained", async () => {
    const agent = await open(under());
    await agent.handle.prompt("sim> write made.txt hello");
    const result = agent.updates.find((update) => update.kind === "toolResult");
    const [file] = result?.files ?? [];
    assert.deepEqual([file?.status, file?.added, file?.removed], ["added", 1, 0]);
    assert.match(file?.path ?? "", /made\.txt$/);
    await agent.handle.stop(2_000);
  });

  it("a summary that replaces the conversation is reported", async () => {
    const agent = await open(under());
    await agent.handle.prompt("sim> compact all that was\nsim> say on");
    const told = agent.updates.filter((update) => update.kind === "compaction");
    assert.deepEqual(told, [{ kind: "compaction", summary: "all that was" }]);
    await agent.handle.stop(2_000);
  });

  it("a prompt's usage is reported at its end", async () => {
    const agent = await open(under());
    const end = await agent.handle.prompt("sim> usage 10 20 0.5\nsim> usage 1 2 0.25");
    assert.deepEqual(end.usage, { inputTokens: 11, cachedTokens: 0, outputTokens: 22, usd: 0.75 });
    await agent.handle.stop(2_000);
  });

  it("a request for permission is answered with what the caller decides", async () => {
    const denied = await open(under());
    await denied.handle.prompt("sim> permit rm -r build");
    assert.deepEqual(denied.texts(), ["sim: denied"]);
    assert.equal(denied.requests[0]?.kind === "permission" && denied.requests[0].command, "rm -r build");
    const allowed = await open(under(), { answer: () => ({ kind: "allow" }) });
    await allowed.handle.prompt("sim> permit rm -r build");
    assert.deepEqual(allowed.texts(), ["sim: allowed"]);
    await Promise.all([denied.handle.stop(2_000), allowed.handle.stop(2_000)]);
  });

  it("a question is answered, or declined, and the agent goes on", async () => {
    const agent = await open(under(), {
      answer: (request) =>
        request.kind === "question" && request.questions[0]?.options.includes("blue")
          ? { kind: "answer", answers: { q1: "blue" } }
          : { kind: "deny" },
    });
    await agent.handle.prompt("sim> ask Which colour? | red | blue\nsim> ask Why?");
    assert.deepEqual(agent.texts(), ["sim: answered blue", "sim: no answer"]);
    assert.deepEqual(agent.requests[0], {
      kind: "question",
      questions: [{ id: "q1", text: "Which colour?", options: ["red", "blue"], multiple: false }],
    });
    await agent.handle.stop(2_000);
  });

  it("a steered message is answered in the running turn, and refused when there is none", async () => {
    const agent = await open(under());
    assert.equal(await agent.handle.steer("too early"), "refused");
    const ending = agent.handle.prompt("sim> say on\nsim> hang");
    await agent.said("on");
    assert.equal(await agent.handle.steer("look here"), "injected");
    await agent.said("sim: look here");
    agent.handle.cancel();
    assert.equal((await ending).stopReason, "cancelled");
    await agent.handle.stop(2_000);
  });

  it("a prompt of five megabytes arrives whole", async () => {
    const agent = await open(under());
    const length = 5 * 1024 * 1024;
    await agent.handle.prompt("é".repeat(length));
    const echoed = (agent.texts()[0] ?? "").replace(/^sim: /, "");
    const [, rest = "0"] = / \((\d+) characters more\)$/.exec(echoed) ?? [];
    assert.equal(echoed.indexOf("…") + Number(rest), length);
    await agent.handle.stop(2_000);
  });

  it("a second prompt while one runs is an error and disturbs nothing", async () => {
    const agent = await open(under());
    const first = agent.handle.prompt("sim> say on\nsim> hang");
    await agent.said("on");
    assert.equal((await agent.handle.prompt("second")).stopReason, "error");
    agent.handle.cancel();
    assert.equal((await first).stopReason, "cancelled");
    await agent.handle.stop(2_000);
  });
}

function endingCases(under: () => DriverUnderTest): void {
  it("a cancelled prompt ends as cancelled and the session goes on", async () => {
    const agent = await open(under());
    const ending = agent.handle.prompt("sim> say on\nsim> hang");
    await agent.said("on");
    agent.handle.cancel();
    assert.equal((await ending).stopReason, "cancelled");
    assert.equal((await agent.handle.prompt("again")).stopReason, "end_turn");
    await agent.handle.stop(2_000);
  });

  it("a cancel also ends a prompt that waits for an answer", async () => {
    const agent = await open(under(), { answer: () => new Promise(() => {}) });
    const ending = agent.handle.prompt("sim> say on\nsim> permit x");
    await agent.said("on");
    await eventually("the request arrives", () => agent.requests.length === 1);
    agent.handle.cancel();
    assert.equal((await ending).stopReason, "cancelled");
    await agent.handle.stop(2_000);
  });

  it("an agent's error becomes the prompt's error, with its text", async () => {
    const agent = await open(under());
    const end = await agent.handle.prompt("sim> fail the model is away");
    assert.deepEqual([end.stopReason, end.error], ["error", "the model is away"]);
    assert.equal((await agent.handle.prompt("still here")).stopReason, "end_turn");
    await agent.handle.stop(2_000);
  });

  it("a vendor's usage limit says when it ends", async () => {
    const agent = await open(under());
    const before = Date.now();
    const end = await agent.handle.prompt("sim> limit 60");
    assert.equal(end.stopReason, "error");
    assert.ok((end.limitedUntil ?? 0) >= before + 60_000);
    await agent.handle.stop(2_000);
  });

  it("an agent that exits in the middle of a prompt ends it with its exit code and standard error", async () => {
    const agent = await open(under());
    const end = await agent.handle.prompt("sim> say before\nsim> crash");
    assert.equal(end.stopReason, "exited");
    assert.equal(end.exit?.code, 1);
    assert.match(end.exit?.stderrTail ?? "", /as told/);
    assert.deepEqual(agent.texts(), ["before"]);
    assert.deepEqual(await agent.handle.exited, end.exit);
    assert.equal((await agent.handle.prompt("anyone?")).stopReason, "exited");
    await agent.handle.stop(0);
  });

  it("an agent that writes half a line and exits has exited", async () => {
    const agent = await open(under());
    const end = await agent.handle.prompt("sim> half");
    assert.deepEqual([end.stopReason, end.exit?.code], ["exited", 0]);
    await agent.handle.stop(0);
  });

  it("a running prompt ends when the agent is stopped", async () => {
    const agent = await open(under());
    const ending = agent.handle.prompt("sim> deaf\nsim> say on\nsim> hang");
    await agent.said("on");
    await agent.handle.stop(0);
    const { stopReason, isAnswered } = await ending;
    assert.deepEqual([stopReason, isAnswered], ["exited", false]);
    await agent.handle.exited;
  });

  it("stopping twice, and after the end, is the same as once", async () => {
    const agent = await open(under());
    const reports = await Promise.all([agent.handle.stop(100), agent.handle.stop(0)]);
    assert.deepEqual([...reports, await agent.handle.stop(0)], [{ left: [] }, { left: [] }, { left: [] }]);
  });
}

function loadCases(under: () => DriverUnderTest): void {
  it("a loaded session holds what was said to it and what our own tools answered", async () => {
    const first = await open(under());
    await first.handle.prompt("one\n<!-- message:m-1 -->");
    await first.handle.prompt('sim> tool list_sessions {"a":1}\nsim> say done');
    assert.equal(first.handle.replay, null);
    await first.handle.stop(2_000);

    const second = await open(under(), { load: first.handle.agentSessionId });
    const { replay } = second.handle;
    assert.equal(second.handle.agentSessionId, first.handle.agentSessionId);
    assert.match(replay?.userTexts[0] ?? "", /message:m-1/);
    assert.equal(replay?.userTexts.length, 2);
    assert.deepEqual(replay?.toolCalls, [0, 1]);
    assert.match(replay?.toolResults[0] ?? "", /tool list_sessions failed/);
    assert.equal(replay?.lastText, "done");
    assert.deepEqual(second.updates, [], "a replay is not news");
    assert.equal((await second.handle.prompt("two")).stopReason, "end_turn");
    await second.handle.stop(2_000);
  });

  it("a message that was being worked on when the agent was killed is found by a load", async () => {
    const first = await open(under());
    const ending = first.handle.prompt("sim> deaf\nsim> say on\nsim> hang\n<!-- message:m-2 -->");
    await first.said("on");
    assert.equal(await first.handle.steer("steered\n<!-- message:m-3 -->"), "injected");
    await first.handle.stop(0);
    await ending;
    const second = await open(under(), { load: first.handle.agentSessionId });
    const all = second.handle.replay?.userTexts.join("\n") ?? "";
    assert.match(all, /message:m-2/);
    assert.match(all, /message:m-3/);
    await second.handle.stop(2_000);
  });

  it("a fork begins with the conversation so far, and neither sees what the other says after it", async (t) => {
    if (!(await under().driver.probe()).fork) return t.skip("this agent cannot fork");
    const first = await open(under());
    await first.handle.prompt("the word is swordfish");
    const hanging = first.handle.prompt("sim> say in the middle\nsim> hang");
    await first.said("in the middle");
    const fork = await open(under(), { fork: first.handle.agentSessionId });
    assert.notEqual(fork.handle.agentSessionId, first.handle.agentSessionId);
    assert.equal(fork.handle.replay, null);
    assert.deepEqual(fork.updates, [], "what was said before is not news");
    await fork.handle.prompt("sim> recall swordfish\nsim> say only here");
    assert.deepEqual(fork.texts(), ["sim: recalls swordfish", "only here"]);
    first.handle.cancel();
    await hanging;
    await first.handle.prompt("sim> recall only here");
    assert.equal(first.texts().at(-1), "sim: does not recall only here");
    for (const agent of [first, fork]) await agent.handle.stop(2_000);
    const loaded = await open(under(), { load: fork.handle.agentSessionId });
    assert.match(loaded.handle.replay?.userTexts.join("\n") ?? "", /swordfish[^]*only here/);
    await loaded.handle.stop(2_000);
  });

  it("a conversation that cannot be forked is a result, and leaves nothing running", async (t) => {
    if (!(await under().driver.probe()).fork) return t.skip("this agent cannot fork");
    const { request, leaseId } = prepare(under().cwd, { fork: "sim-00000000-0000-0000-0000-000000000000" });
    const result = await under().driver.open(request);
    assert.equal(result.ok ? "opened" : result.reason, "fork_failed");
    assert.deepEqual(await marked(leaseId), []);
  });

  it("a session that the agent does not have is a result, and leaves nothing running", async () => {
    const { request, leaseId } = prepare(under().cwd, { load: "sim-00000000-0000-0000-0000-000000000000" });
    const result = await under().driver.open(request);
    assert.equal(result.ok ? "opened" : result.reason, "no_session");
    assert.deepEqual(await marked(leaseId), []);
  });
}

function processCases(under: () => DriverUnderTest): void {
  const reasonToSkip = (): string | false => under().noProcesses;

  it("an agent that ignores a cancel is killed, with everything below it", async (t) => {
    if (reasonToSkip()) return t.skip(reasonToSkip() as string);
    const agent = await open(under());
    const ending = agent.handle.prompt("sim> deaf\nsim> say on\nsim> sleep 600000");
    await agent.said("on");
    await hasCommand(agent, "sleep");
    assert.ok((await marked(agent.leaseId)).length >= 2);
    const report = await agent.handle.stop(200);
    assert.deepEqual(report.left, []);
    assert.deepEqual(await marked(agent.leaseId), []);
    assert.equal((await ending).stopReason, "exited");
  });

  it("descendants are named with their start times, and are background work if this turn began them", async (t) => {
    if (reasonToSkip()) return t.skip(reasonToSkip() as string);
    const agent = await open(under());
    const since = Date.now();
    await agent.handle.prompt("just talk");
    assert.equal(await agent.handle.background(since), false);
    await agent.handle.prompt("sim> background 600000");
    await hasCommand(agent, "sleep");
    const found = await agent.handle.descendants();
    assert.ok(found.every((one) => one.startTime !== null));
    assert.equal(await agent.handle.background(since), true);
    assert.equal(await agent.handle.background(Date.now() + 60_000), false);
    await agent.handle.stop(2_000);
    assert.deepEqual(await marked(agent.leaseId), []);
  });

  it("processes that an agent leaves behind when it exits are ended", async (t) => {
    if (reasonToSkip()) return t.skip(reasonToSkip() as string);
    const agent = await open(under());
    await agent.handle.prompt("sim> background 600000\nsim> crash");
    await agent.handle.exited;
    await eventually("nothing carries the marker", async () => (await marked(agent.leaseId)).length === 0);
    assert.deepEqual((await agent.handle.stop(0)).left, []);
  });

  it("noise between messages is skipped, and an endless line ends the agent", async (t) => {
    if (reasonToSkip()) return t.skip(reasonToSkip() as string);
    const agent = await open(under());
    assert.equal((await agent.handle.prompt("sim> flood 3\nsim> say still here")).stopReason, "end_turn");
    assert.deepEqual(agent.texts(), ["still here"]);
    const end = await agent.handle.prompt("sim> flood 200");
    assert.equal(end.stopReason, "error");
    assert.match(end.error ?? "", /line of more than 64 MB/);
    assert.deepEqual(await marked(agent.leaseId), []);
  });

  it("the token is in no command line and in no environment", async (t) => {
    if (reasonToSkip()) return t.skip(reasonToSkip() as string);
    const token = `secret-${process.pid}-${"x".repeat(8)}`;
    const agent = await open(under(), { mcp: { url: "http://127.0.0.1:9/mcp", token } });
    const ending = agent.handle.prompt("sim> say on\nsim> sleep 600000");
    await agent.said("on");
    await hasCommand(agent, "sleep");
    for (const pid of listPids()) {
      assert.equal(readOf(pid, "cmdline").includes(token), false);
      if (pid !== process.pid) assert.equal(readOf(pid, "environ").includes(token), false);
    }
    await agent.handle.stop(0);
    await ending;
  });
}

async function hasCommand(agent: Opened, command: string): Promise<void> {
  await eventually(`${command} runs below the agent`, async () =>
    (await agent.handle.descendants()).some((one) => one.command === command),
  );
}

function readOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
}
