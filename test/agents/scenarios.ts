import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { eventually } from "../support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants, childNamed } from "../support/family.ts";
import type { Rule, Step } from "./model/script.ts";
import type { ProgramName } from "./support/cache.ts";
import { TOOLS } from "./support/tools.ts";
import { AGENT_MS, processesWith, timesTold } from "./support/stage.ts";
import type { Stage } from "./support/stage.ts";

/** The agents that run the parent and the child of a scenario. */
export interface Ends {
  readonly parent: ProgramName;
  readonly kid: ProgramName;
}

/** The child's agent is named only if it differs, because a child inherits its parent's agent. */
function spawnKid({ parent, kid }: Ends, more: Record<string, string> = {}): Step {
  const input = { name: "kid", prompt: "KID-WORK: do your part.", ...(kid === parent ? {} : { agent: kid }) };
  return {
    call: { tool: "spawn_session", input: { ...input, ...more } },
    capture: { kid: /"session_id":"(\w+)"/ },
  };
}

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

export async function calledBack(stage: Stage, ends: Ends): Promise<void> {
  const list: Step = { call: { tool: "list_sessions", input: {} } };
  stage.model.play(rules({ parent: [spawnKid(ends), { say: "spawned" }], kid: [list, { say: KID_DONE }] }));
  const client = await stage.start();
  const root = await stage.root(client, ends.parent, "RAISE a kid");
  await stage.asked("kid");
  assert.deepEqual(stage.tokensInCommandLines(), []);
  const sessions = await allQuiet(client, root.id, AGENT_MS);
  assert.deepEqual(stage.tokensInCommandLines(), []);
  assert.deepEqual(
    sessions.map((each) => [each.name, each.agent, each.outcome]),
    [
      ["root", ends.parent, "completed"],
      ["kid", ends.kid, "completed"],
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

export async function waits(stage: Stage, ends: Ends): Promise<void> {
  const wait: Step = {
    call: { tool: "wait_session", input: { ids: ["${kid}"] } },
    until: /has done its part/,
  };
  stage.model.play(
    rules({ parent: [spawnKid(ends), wait, { say: "waited" }], kid: [{ say: KID_DONE, delayMs: 500 }] }),
  );
  const client = await stage.start();
  const root = await stage.root(client, ends.parent, "RAISE a kid");
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

export async function takesMessage(stage: Stage, ends: Ends): Promise<string> {
  const steered: Rule = { name: "steered", on: /LOOK-HERE/, steps: [{ say: "looked" }] };
  const shell: Step = {
    call: TOOLS[ends.kid].shell("tail --pid=$$ -f /dev/null & sleep 4; kill $!; echo slept"),
  };
  stage.model.play([
    steered,
    ...rules({ parent: [spawnKid(ends), { say: "spawned" }], kid: [shell, { say: KID_DONE }] }),
  ]);
  const client = await stage.start();
  const root = await stage.root(client, ends.parent, "RAISE a kid");
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

/** Returns a rule that answers a trigger. The trigger's id is taken from the message to the parent. */
function answering(name: string, on: RegExp, input: Record<string, string>): Rule {
  const call = { tool: "respond_to_trigger", input: { triggerId: "${trigger}", ...input } };
  return { name, on, capture: { trigger: /<!-- trigger:(\w+) -->/ }, steps: [{ call }, { say: "answered" }] };
}

export async function asks(stage: Stage, ends: Ends): Promise<void> {
  const question: Step = {
    call: {
      tool: "ask_user_question",
      input: { questions: [{ question: "Which dataset?", options: ["small", "full"] }] },
    },
    until: /small/,
  };
  stage.model.play([
    answering("question", /asks and waits/, { response: "small" }),
    ...rules({ parent: [spawnKid(ends), { say: "spawned" }], kid: [question, { say: KID_DONE }] }),
  ]);
  const client = await stage.start();
  const root = await stage.root(client, ends.parent, "RAISE a kid");
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

export async function permitted(stage: Stage, ends: Ends): Promise<void> {
  const file = path.join(stage.project, "made.txt");
  const spawn = spawnKid(ends, { permission: "ask" });
  const write: Step = { call: TOOLS[ends.kid].write(file, "made") };
  stage.model.play([
    answering("permission", /wants to run/, { action: "allow", response: "" }),
    ...rules({ parent: [spawn, { say: "spawned" }], kid: [write, { say: KID_DONE }] }),
  ]);
  const client = await stage.start();
  const root = await stage.root(client, ends.parent, "RAISE a kid");
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

export async function cancelled(stage: Stage, ends: Ends): Promise<void> {
  const mark = (who: string): string => `MARK-${who}-${process.pid}-${Date.now()}`;
  const [ofParent, ofKid] = [mark("parent"), mark("kid")];
  const run = (agent: ProgramName, name: string): Step => ({
    call: TOOLS[agent].shell(`tail -f /dev/null; echo ${name}`),
  });
  const hang: Step = { say: "it still runs, so I wait for it", hang: true };
  stage.model.play(
    rules({ parent: [spawnKid(ends), run(ends.parent, ofParent), hang], kid: [run(ends.kid, ofKid), hang] }),
  );
  const client = await stage.start();
  const root = await stage.root(client, ends.parent, "RAISE a kid");
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

export async function fails(stage: Stage, ends: Ends): Promise<void> {
  const error = { status: 400, message: "the scripted model refuses" };
  stage.model.play(rules({ parent: [spawnKid(ends), { say: "spawned" }], kid: [{ error }] }));
  const client = await stage.start();
  const root = await stage.root(client, ends.parent, "RAISE a kid");
  const sessions = await allQuiet(client, root.id, AGENT_MS);
  assert.deepEqual(
    sessions.map((each) => each.outcome),
    ["completed", "failed"],
  );
  const [callback] = await callbacksTo(client, root.id);
  assert.match(callback?.text ?? "", /FAILED/);
  await checkInvariants(client, root.id);
}

export async function resumed(stage: Stage, ends: Ends): Promise<void> {
  const hang: Step = { say: "this answer begins and the daemon dies before it ends", hang: true };
  stage.model.play(rules({ parent: [spawnKid(ends), hang], kid: [hang] }));
  const before = await stage.start();
  const root = await stage.root(before, ends.parent, "RAISE a kid");
  await Promise.all([stage.asked("kid"), stage.asked("parent", 1)]);
  await stage.kept(before, root.id, { root: "RAISE a kid", kid: "KID-WORK" });
  await stage.home.kill();
  await eventually("its agents have died with it", async () => stage.home.agents().length === 0);

  stage.model.play(rules({ parent: [spawnKid(ends), { say: "goes on" }], kid: [{ say: KID_DONE }] }));
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
