import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, describe, it } from "node:test";
import type { TestContext } from "node:test";
import { eventually } from "../support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants, childNamed } from "../support/family.ts";
import type { Rule, Step } from "./model/script.ts";
import { isCached } from "./support/cache.ts";
import type { ProgramName } from "./support/cache.ts";
import { Cells } from "./support/cells.ts";
import type { Role, Row } from "./support/cells.ts";
import { TOOLS } from "./support/tools.ts";
import { AGENT_MS, processesWith, Stage, timesTold, tokensInCommandLines } from "./support/stage.ts";

/** The contract that every real agent keeps, as a parent and as a child: both ends are the same agent. */
export function contract(agent: ProgramName): void {
  const skip = isCached(agent) ? false : `${agent} is not in the cache: npm run test:agents`;
  describe(`${agent} at both ends`, { skip, concurrency: false }, () => {
    const cells = new Cells(agent);
    after(() => cells.save());

    const proves = (
      name: string,
      rows: Partial<Record<Role, readonly Row[]>>,
      run: (stage: Stage) => Promise<string | void>,
    ): void => {
      it(name, { timeout: TEST_MS }, async (context: TestContext) => {
        const stage = await Stage.open([agent], []);
        try {
          const note = await run(stage);
          await stage.close();
          cells.note(rows, true, note ?? "");
        } catch (error) {
          cells.note(rows, false, error instanceof Error ? error.message : String(error));
          for (const one of stage.model.asked) context.diagnostic(`${one.rule}#${one.step} ${one.answer}`);
          await stage.close();
          throw error;
        }
      });
    };

    proves(
      "raises a child and is called back while it is idle",
      {
        parent: [
          "sees and calls the tools",
          "spawns",
          "is called back while idle",
          "leaves no token in a command line",
        ],
        child: ["sees and calls the tools", "reports its result once", "leaves no token in a command line"],
      },
      (stage) => calledBack(stage, agent),
    );
    proves("waits for its child and is not told again", { parent: ["waits"] }, (stage) =>
      waits(stage, agent),
    );
    proves(
      "takes a message while it works, and says how",
      { child: ["takes a message while it works"] },
      (stage) => takesMessage(stage, agent),
    );
    proves(
      "asks a question that its parent answers",
      {
        parent: ["asks a question that its parent answers"],
        child: ["asks a question that its parent answers"],
      },
      (stage) => asks(stage, agent),
    );
    proves(
      "has a permission request answered by its parent",
      { parent: ["has a permission request answered"], child: ["has a permission request answered"] },
      (stage) => permitted(stage, agent),
    );
    proves(
      "is cancelled with its shell commands",
      {
        parent: ["is cancelled with its shell commands"],
        child: ["is cancelled with its shell commands"],
      },
      (stage) => cancelled(stage, agent),
    );
    proves("fails when its model fails", { child: ["fails when its model fails"] }, (stage) =>
      fails(stage, agent),
    );
    proves(
      "is resumed after the daemon was killed, with every message once",
      {
        parent: ["is resumed after SIGKILL, every message once"],
        child: ["is resumed after SIGKILL, every message once"],
      },
      (stage) => resumed(stage, agent),
    );
  });
}

const TEST_MS = 400_000;

const spawnKid: Step = {
  call: { tool: "spawn_session", input: { name: "kid", prompt: "KID-WORK: do your part." } },
  capture: { kid: /"session_id":"(\w+)"/ },
};

function rules(parts: { parent: readonly Step[]; kid: readonly Step[] }): Rule[] {
  return [
    { name: "called back", on: /\[Kinfold\] Child "kid"/, steps: [{ say: "noted" }] },
    { name: "cut parent", on: /turn was cut[\s\S]*already started: "kid"/, steps: [{ say: "goes on" }] },
    { name: "cut kid", on: /turn was cut/, steps: [{ say: KID_DONE }] },
    { name: "kid", on: /KID-WORK/, steps: parts.kid },
    { name: "parent", on: /RAISE/, steps: parts.parent },
  ];
}

const KID_DONE = "the kid has done its part";

async function calledBack(stage: Stage, agent: string): Promise<void> {
  const list: Step = { call: { tool: "list_sessions", input: {} } };
  stage.model.play(rules({ parent: [spawnKid, { say: "spawned" }], kid: [list, { say: KID_DONE }] }));
  const client = await stage.start();
  const root = await stage.root(client, agent, "RAISE a kid");
  await stage.asked("kid");
  assert.deepEqual(tokensInCommandLines(), []);
  const sessions = await allQuiet(client, root.id, AGENT_MS);
  assert.deepEqual(tokensInCommandLines(), []);
  assert.deepEqual(
    sessions.map((each) => [each.name, each.agent, each.outcome]),
    [
      ["root", agent, "completed"],
      ["kid", agent, "completed"],
    ],
  );
  await checkInvariants(client, root.id);
  const told = await stage.asked("called back");
  assert.equal(timesTold(told, KID_DONE), 1, "the parent's model is told the result once");
  assert.equal(timesTold(told, "RAISE a kid"), 1);
  const kid = await stage.asked("kid", 1);
  assert.match(kid.messages.flatMap((one) => one.results.map((each) => each.text)).join(), /root/);
  assert.ok((sessions[0]?.usage.inputTokens ?? 0) > 0, "what it used is known");
}

async function waits(stage: Stage, agent: string): Promise<void> {
  const wait: Step = {
    call: { tool: "wait_session", input: { ids: ["${kid}"] } },
    until: /has done its part/,
  };
  stage.model.play(
    rules({ parent: [spawnKid, wait, { say: "waited" }], kid: [{ say: KID_DONE, delayMs: 500 }] }),
  );
  const client = await stage.start();
  const root = await stage.root(client, agent, "RAISE a kid");
  await allQuiet(client, root.id, AGENT_MS);
  await checkInvariants(client, root.id);
  const last = await stage.asked("parent", 2);
  assert.equal(timesTold(last, KID_DONE), 1);
  assert.deepEqual(await callbacksTo(client, root.id), [], "what the wait has told is not told again");
  assert.equal(
    stage.model.asked.some((one) => one.rule === "called back"),
    false,
  );
}

async function takesMessage(stage: Stage, agent: ProgramName): Promise<string> {
  const steered: Rule = { name: "steered", on: /LOOK-HERE/, steps: [{ say: "looked" }] };
  const shell: Step = {
    call: TOOLS[agent].shell("tail --pid=$$ -f /dev/null & sleep 4; kill $!; echo slept"),
  };
  stage.model.play([
    steered,
    ...rules({ parent: [spawnKid, { say: "spawned" }], kid: [shell, { say: KID_DONE }] }),
  ]);
  const client = await stage.start();
  const root = await stage.root(client, agent, "RAISE a kid");
  await stage.asked("kid");
  const kid = await childNamed(client, root.id, "kid");
  await eventually("its command runs", async () => processesWith("echo slept").length > 0, AGENT_MS);
  await client.tell({ id: kid.id, message: "LOOK-HERE now", deliverAs: "steer", restart: true });
  await allQuiet(client, root.id, AGENT_MS);
  const { messages } = await client.inbox({ id: kid.id, all: true });
  const message = messages.find((one) => one.body?.includes("LOOK-HERE") ?? false);
  const told = await stage.asked("steered");
  assert.equal(timesTold(told, "LOOK-HERE"), 1, "the model is told once");
  await checkInvariants(client, root.id);
  return String(message?.metadata["delivered"] ?? "?");
}

/** The parent is told with an id; its model answers by that id. */
function answering(name: string, on: RegExp, input: Record<string, string>): Rule {
  const call = { tool: "respond_to_trigger", input: { triggerId: "${trigger}", ...input } };
  return { name, on, capture: { trigger: /<!-- trigger:(\w+) -->/ }, steps: [{ call }, { say: "answered" }] };
}

async function asks(stage: Stage, agent: string): Promise<void> {
  const question: Step = {
    call: {
      tool: "ask_user_question",
      input: { questions: [{ question: "Which dataset?", options: ["small", "full"] }] },
    },
    until: /small/,
  };
  stage.model.play([
    answering("question", /asks and waits/, { response: "small" }),
    ...rules({ parent: [spawnKid, { say: "spawned" }], kid: [question, { say: KID_DONE }] }),
  ]);
  const client = await stage.start();
  const root = await stage.root(client, agent, "RAISE a kid");
  const sessions = await allQuiet(client, root.id, AGENT_MS);
  assert.deepEqual(
    sessions.map((each) => each.outcome),
    ["completed", "completed"],
  );
  const told = await stage.asked("kid", 1);
  assert.match(told.messages.flatMap((one) => one.results.map((each) => each.text)).join("\n"), /small/);
  const { triggers } = await client.triggers({ id: sessions[1]!.id });
  const trigger = triggers.find((each) => each.type === "ask_user_question");
  assert.equal(trigger?.status, "answered");
  await checkInvariants(client, root.id);
}

async function permitted(stage: Stage, agent: ProgramName): Promise<void> {
  const file = path.join(stage.project, "made.txt");
  const careful = { name: "kid", prompt: "KID-WORK: do your part.", permission: "ask" };
  const spawn: Step = { call: { tool: "spawn_session", input: careful } };
  const write: Step = { call: TOOLS[agent].write(file, "made") };
  stage.model.play([
    answering("permission", /wants to run/, { action: "allow", response: "" }),
    ...rules({ parent: [spawn, { say: "spawned" }], kid: [write, { say: KID_DONE }] }),
  ]);
  const client = await stage.start();
  const root = await stage.root(client, agent, "RAISE a kid");
  const sessions = await allQuiet(client, root.id, AGENT_MS);
  assert.deepEqual(
    sessions.map((each) => each.outcome),
    ["completed", "completed"],
  );
  assert.equal(readFileSync(file, "utf8").trim(), "made");
  const { triggers } = await client.triggers({ id: sessions[1]!.id });
  const asked = triggers.filter((each) => each.type === "permission");
  assert.ok(asked.length > 0, "it was asked");
  assert.ok(asked.every((each) => each.status === "answered"));
  await checkInvariants(client, root.id);
}

async function cancelled(stage: Stage, agent: ProgramName): Promise<void> {
  const mark = (who: string): string => `MARK-${who}-${process.pid}-${Date.now()}`;
  const [ofParent, ofKid] = [mark("parent"), mark("kid")];
  const run = (name: string): Step => ({ call: TOOLS[agent].shell(`tail -f /dev/null; echo ${name}`) });
  const hang: Step = { say: "it still runs, so I wait for it", hang: true };
  stage.model.play(rules({ parent: [spawnKid, run(ofParent), hang], kid: [run(ofKid), hang] }));
  const client = await stage.start();
  const root = await stage.root(client, agent, "RAISE a kid");
  const isRunning = async (): Promise<boolean> =>
    processesWith(ofParent).length > 0 && processesWith(ofKid).length > 0;
  await eventually("both commands run", isRunning, AGENT_MS);
  await client.cancel({ id: root.id });
  await eventually("everything has stopped", async () => stage.home.agents().length === 0, 30_000);
  assert.deepEqual([...processesWith(ofParent), ...processesWith(ofKid)], []);
  const sessions = await allQuiet(client, root.id);
  assert.deepEqual(
    sessions.map((each) => [each.status, each.outcome]),
    [
      ["ended", "cancelled"],
      ["ended", "cancelled"],
    ],
  );
}

async function fails(stage: Stage, agent: string): Promise<void> {
  const error = { status: 400, message: "the scripted model refuses" };
  stage.model.play(rules({ parent: [spawnKid, { say: "spawned" }], kid: [{ error }] }));
  const client = await stage.start();
  const root = await stage.root(client, agent, "RAISE a kid");
  const sessions = await allQuiet(client, root.id, AGENT_MS);
  assert.deepEqual(
    sessions.map((each) => each.outcome),
    ["completed", "failed"],
  );
  const [callback] = await callbacksTo(client, root.id);
  assert.match(callback?.text ?? "", /FAILED/);
  await checkInvariants(client, root.id);
}

async function resumed(stage: Stage, agent: string): Promise<void> {
  const hang: Step = { say: "this answer begins and the daemon dies before it ends", hang: true };
  stage.model.play(rules({ parent: [spawnKid, hang], kid: [hang] }));
  const before = await stage.start();
  const root = await stage.root(before, agent, "RAISE a kid");
  await Promise.all([stage.asked("kid"), stage.asked("parent", 1)]);
  await stage.home.kill();
  await eventually("its agents have died with it", async () => stage.home.agents().length === 0);

  stage.model.play(rules({ parent: [spawnKid, { say: "goes on" }], kid: [{ say: KID_DONE }] }));
  const client = await stage.start();
  const sessions = await allQuiet(client, root.id, 2 * AGENT_MS);
  assert.deepEqual(
    sessions.map((each) => [each.name, each.outcome]),
    [
      ["root", "completed"],
      ["kid", "completed"],
    ],
  );
  await checkInvariants(client, root.id);
  assert.equal((await callbacksTo(client, root.id)).length, 1);
  const told = await stage.asked("called back");
  assert.equal(timesTold(told, "RAISE a kid"), 1, "the prompt landed once");
  assert.equal(timesTold(told, KID_DONE), 1, "the callback landed once");
  const kid = stage.model.asked.findLast((one) => one.rule === "cut kid" || one.rule === "kid");
  assert.equal(kid === undefined ? 0 : timesTold(kid, "KID-WORK"), 1, "the child's prompt landed once");
  for (const session of sessions) {
    const { messages } = await client.inbox({ id: session.id, all: true });
    assert.deepEqual(
      messages.filter((one) => one.status !== "landed").map((one) => [one.kind, one.status]),
      [],
    );
  }
}
