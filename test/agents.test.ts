import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Client, eventually, gone, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants, childNamed, quiet, running } from "./support/family.ts";
import { gate, openGate, script, spawnStep } from "./support/script.ts";
import { openSpy, SPY_YAML } from "./support/spy.ts";

const ROGUE = fileURLToPath(new URL("./support/rogue-agent.ts", import.meta.url));
const MODES = [
  "exits",
  "endless-line",
  "half-start",
  "silent",
  "deaf",
  "sits",
  "noise",
  "nonsense",
  "empty-answer",
  "signed-out",
  "half-line",
  "killed",
  "closes-output",
  "leaves-others",
  "refuses",
  "invents",
];
const YAML = JSON.stringify({
  agents: {
    ...(JSON.parse(SPY_YAML) as { agents: object }).agents,
    ...Object.fromEntries(
      MODES.map((mode) => [mode, { command: [process.execPath, ROGUE, mode], env: ["PASSED_ON"] }]),
    ),
  },
});
const ENV = {
  KINFOLD_CANCEL_GRACE_MS: "600",
  KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000",
  SECRET_OF_THE_DAEMON: "s3cr3t-value",
  AWS_SECRET_ACCESS_KEY: "an0ther-s3cr3t",
  PASSED_ON: "allowed-value",
};

describe("agents", { concurrency: 4 }, () => {
  const home = new TestHome({ yaml: YAML, env: ENV });
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  const rogues = (mode: string): number[] =>
    home.agents().flatMap(({ pid, command }) => (command.includes(`${ROGUE} ${mode}`) ? [pid] : []));

  /**
   * Runs a child whose agent misbehaves in this mode. Returns the outcome and its reason from the child's
   * session, and the text of the callback to the parent.
   */
  async function endOf(mode: string): Promise<{ outcome: string | null; reason: string; told: string }> {
    const prompt = script(spawnStep({ name: mode, agent: mode, prompt: "do something" }), "say spawned");
    const { session: root } = await client.create({ cwd: home.work, prompt });
    const sessions = await allQuiet(client, root.id);
    const child = sessions.find((each) => each.name === mode)!;
    const told = await callbacksTo(client, root.id);
    assert.equal(told.length, 1, "its parent is told once");
    await checkInvariants(client, root.id);
    const { turns } = await client.turns({ id: child.id });
    assert.ok(turns.every((turn) => turn.status !== "running"));
    return { outcome: child.outcome, reason: child.outcomeReason ?? "", told: told[0]!.text };
  }

  const failing: [string, string, RegExp][] = [
    ["exits at once", "exits", /^the agent exited with code 3: rogue: no licence found$/],
    [
      "writes a line without end",
      "endless-line",
      /^the agent was ended: it wrote a line of more than \d+ MB$/,
    ],
    [
      "answers initialize with nothing",
      "empty-answer",
      /^the agent's answer to initialize is not an object$/,
    ],
    ["opens a session without an id", "nonsense", /session id/],
    ["is not signed in", "signed-out", /^not signed in to signed-out; only the user can fix this$/],
    ["writes half a line and exits in its turn", "half-line", /^the agent process exited with code 0$/],
    ["is killed in its turn", "killed", /^the agent process exited .*SIGKILL\)?$/],
    ["exits and leaves others behind", "leaves-others", /^the agent process exited with code 1$/],
    ["refuses", "refuses", /^the agent stopped: refusal$/],
    ["ends for a reason nobody knows", "invents", /unknown stop reason bored/],
  ];
  for (const [what, mode, reason] of failing) {
    test(`an agent that ${what} has failed, says why, and leaves nothing running`, async () => {
      const end = await endOf(mode);
      assert.equal(end.outcome, "failed");
      assert.match(end.reason, reason);
      assert.doesNotMatch(end.reason, /undefined|null|\[object|\n/);
      const line = end.told.split("\n")[1]!;
      assert.match(line, /^\[Kinfold\] Child ".*" \(\w{8}, .*\) FAILED after .*: .+\.$/);
      assert.ok(await gone(() => rogues(mode).length === 0 || isIdle(mode), 20_000));
      assert.ok(await gone(() => sleepers().length === 0, 20_000), "what it left behind is ended");
    });
  }

  test("an agent that is not signed in is for the user, not for another try", async () => {
    const { told } = await endOf("signed-out");
    assert.match(told, /Tell the user; do not spawn it again\./);
  });

  test("an agent that refuses the requested model fails, and one that accepts it reports its model", async () => {
    const ask = { cwd: home.work, agent: "spy", prompt: script("say x") };
    const { session: failed } = await client.create({ ...ask, model: "gpt-nonsense" });
    const { outcome, outcomeReason } = await quiet(client, failed.id);
    assert.equal(outcome, "failed");
    assert.match(outcomeReason ?? "", /rejected the model gpt-nonsense.*it offers sim-1, cheap-1/);
    const { session } = await client.create(ask);
    const { effective, model } = await quiet(client, session.id);
    assert.deepEqual([effective.model, model], ["sim-1", "sim-1"]);
    const sim = client.create({ ...ask, agent: "sim", model: "gpt-nonsense" });
    await assert.rejects(sim, { code: "unknown_model" });
  });

  test("an agent that floods its output with noise still does its work", async () => {
    const end = await endOf("noise");
    assert.equal(end.outcome, "completed");
    assert.match(end.told, /\nI have begun\n/);
  });

  test("an agent that ignores a cancel is killed, and its session takes more work", async () => {
    const { session } = await client.create({ cwd: home.work, agent: "deaf", prompt: "work" });
    const begun = (times: number) =>
      eventually("it has begun", async () => {
        const { entries } = await client.entries({ id: session.id });
        return entries.filter((entry) => entry.body.text === "I have begun").length === times;
      });
    await begun(1);
    const stop = await client.cancel({ id: session.id, turnOnly: true });
    assert.equal(stop.cancelled, true);
    assert.deepEqual([(await quiet(client, session.id)).outcome, rogues("deaf")], ["cancelled", []]);
    await client.prompt({ id: session.id, prompt: "once more" });
    await running(client, session.id);
    await begun(2);
    const end = await client.cancel({ id: session.id });
    assert.deepEqual([end.cancelled, end.left], [true, []]);
    assert.ok(await gone(() => rogues("deaf").length === 0, 20_000));
    const { turns } = await client.turns({ id: session.id });
    assert.deepEqual(
      turns.map((turn) => turn.status),
      ["cancelled", "cancelled"],
    );
  });

  test("an agent that is stopped while it starts has not failed", async () => {
    const { session } = await client.create({ cwd: home.work, agent: "silent", prompt: "work" });
    await eventually("its process runs", async () => rogues("silent").length > 0);
    const { cancelled, left } = await client.cancel({ id: session.id });
    assert.deepEqual([cancelled, left], [true, []]);
    const { session: ended } = await client.get({ id: session.id });
    assert.deepEqual([ended.status, ended.outcome], ["ended", "cancelled"]);
  });

  test("a prompt as long as the limit arrives whole, and a longer one is refused", async () => {
    const prompt = `begin ${"0123456789".repeat(99_999)} end`;
    await assert.rejects(client.create({ cwd: home.work, prompt: `${prompt}${"x".repeat(60_000)}` }), {
      code: "prompt_too_large",
    });
    const { session } = await client.create({ cwd: home.work, prompt });
    const done = await quiet(client, session.id);
    assert.equal(done.outcome, "completed");
    const { entries } = await client.entries({ id: session.id });
    assert.equal(entries[0]!.body.text, prompt);
    const [, shown = "", more] =
      /^sim: (.+)… \((\d+) characters more\)$/s.exec(entries.at(-1)!.body.text) ?? [];
    assert.equal(shown.length + Number(more), prompt.length);
    assert.equal(done.spawnConfig["prompt"], prompt.slice(0, 400));
  });

  test("no command line and no agent's environment contains a token", async () => {
    const spy = await openSpy(home, client, { name: "secrets", prompt: script(gate("end")) });
    await spy.call("spawn_session", { name: "shell", agent: "sim", prompt: script("run sleep 30", "say x") });
    await eventually("a shell runs below an agent", async () =>
      home.agents().some(({ command }) => command.startsWith("sleep 30")),
    );
    const tokens = [home.token, spy.token];
    for (const { pid, command } of everyProcess()) {
      for (const token of tokens)
        assert.ok(!command.includes(token), `the command line of ${pid} has a token`);
    }
    const agents = home.agents();
    assert.ok(agents.length >= 3);
    for (const { pid, command } of agents) {
      assert.doesNotMatch(command, /kf[ps]_[\w-]{20}/);
      const environment = ofProcess(pid, "environ");
      for (const token of tokens) assert.ok(!environment.includes(token));
    }
    await client.cancel({ id: (await childNamed(client, spy.id, "shell")).id });
    openGate(spy.folder, "end");
    await spy.close();
    await allQuiet(client, spy.id);
  });

  test("an agent gets only the listed variables of our environment", async () => {
    const { session } = await client.create({ cwd: home.work, prompt: script("run env", "hang") });
    const { session: rogue } = await client.create({ cwd: home.work, agent: "sits", prompt: "work" });
    const shown = await eventually("the shell has answered", async () => {
      const { entries } = await client.entries({ id: session.id });
      return entries.find((entry) => entry.kind === "toolResult")?.body.text;
    });
    await eventually("both run", async () => rogues("sits").length > 0);
    const environments = home.agents().map(({ pid }) => ofProcess(pid, "environ"));
    for (const text of [shown, ...environments.filter((each) => each !== "")]) {
      const names = new Set(text.split(/[\0\n]/).map((line) => line.split("=")[0]));
      assert.ok(names.has("KINFOLD_LEASE") && names.has("PATH"));
      assert.ok(!names.has("KINFOLD_HOME") && !names.has("KINFOLD_TOKEN"));
      assert.doesNotMatch(text, /s3cr3t/);
    }
    assert.doesNotMatch(shown, /PASSED_ON/, "what one agent may see another need not");
    for (const pid of rogues("sits")) {
      assert.match(ofProcess(pid, "environ"), /(^|\0)PASSED_ON=allowed-value(\0|$)/);
    }
    await client.cancel({ id: session.id });
    await client.cancel({ id: rogue.id });
  });

  test("a person's token in an agent's hands is refused", async () => {
    writeFileSync(path.join(home.work, "stolen"), home.token);
    const authorization = '"Bearer "+fs.readFileSync("stolen","utf8")';
    const ask = `fetch("${home.url}/api/health",{headers:{authorization:${authorization}}}).then(r=>r.text()).then(console.log)`;
    const { session } = await client.create({
      cwd: home.work,
      prompt: script(`run ${process.execPath} -e '${ask}'`),
    });
    await quiet(client, session.id);
    const { entries } = await client.entries({ id: session.id });
    const result = entries.find((entry) => entry.kind === "toolResult")!.body.text;
    assert.match(result, /"code":"caller_is_agent"/);
  });

  /** In these modes the round ends normally, so the agent's process stays alive for a while and is idle. */
  function isIdle(mode: string): boolean {
    return mode === "refuses" || mode === "invents" || mode === "noise";
  }

  function sleepers(): string[] {
    return home.agents().flatMap(({ command }) => (command.startsWith("sleep 600") ? [command] : []));
  }
});

test("an agent that never answers initialize, or with half a line, has failed when its time is over", async () => {
  const home = new TestHome({ yaml: YAML, env: { KINFOLD_START_MS: "800" } });
  try {
    const client = await home.start();
    for (const agent of ["silent", "half-start"]) {
      const { session: root } = await client.create({ cwd: home.work, agent, prompt: "work" });
      const { session } = await client.spawn({ id: root.id, agent, name: agent, prompt: "work" });
      const child = await quiet(client, session.id);
      assert.equal(child.outcome, "failed");
      assert.equal(child.outcomeReason, "the agent did not answer within 800 ms of its start");
      const { messages } = await client.inbox({ id: root.id, all: true });
      const callbacks = messages.filter((message) => message.kind === "callback");
      assert.deepEqual(
        callbacks.map((message) => message.metadata["outcome"]),
        ["failed"],
      );
      await client.cancel({ id: root.id });
    }
    assert.ok(await gone(() => home.agents().length === 0, 20_000), JSON.stringify(home.agents()));
  } finally {
    await home.close();
  }
});

test("held by the guard, an agent that closes its output, leaves others or ignores a cancel ends as well", async () => {
  const home = new TestHome({ yaml: YAML, env: { ...ENV, KINFOLD_SANDBOX: "guard" } });
  try {
    const client = await home.start();
    const [closes, leaves, deaf] = await Promise.all(
      ["closes-output", "leaves-others", "deaf"].map(async (agent) => {
        const { session } = await client.create({ cwd: home.work, agent, prompt: "work" });
        return session.id;
      }),
    );
    const closed = await quiet(client, closes!);
    assert.equal(closed.outcome, "failed");
    assert.match(closed.outcomeReason!, /it closed its output but kept running/);
    assert.match((await quiet(client, leaves!)).outcomeReason!, /^the agent process exited with code 1$/);
    await eventually("the deaf one works", async () => {
      const { entries } = await client.entries({ id: deaf! });
      return entries.length > 1;
    });
    assert.deepEqual((await client.cancel({ id: deaf! })).left, []);
    assert.ok(await gone(() => home.agents().length === 0, 20_000), JSON.stringify(home.agents()));
  } finally {
    await home.close();
  }
});

function everyProcess(): { pid: number; command: string }[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => ({ pid: Number(pid), command: ofProcess(Number(pid), "cmdline") }));
}

/** Returns "" if the process has ended. */
function ofProcess(pid: number, file: "cmdline" | "environ"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
