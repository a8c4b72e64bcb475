import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { randomFrom } from "../src/testing/seeds.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { connect } from "../src/client/index.ts";
import { allQuiet, callbacksTo, checkInvariants, childNamed, toolReplies } from "./support/family.ts";
import { FeedReader } from "./support/feed-reader.ts";
import { openSpy, SPY_YAML } from "./support/spy.ts";

const ask = (question: string, more: object = {}): string =>
  `sim> tool ask_user_question ${JSON.stringify({ questions: [{ question, options: ["small", "full"] }], ...more })} as a`;
const spawn = (name: string, prompt: string, more: object = {}): string =>
  `sim> tool spawn_session ${JSON.stringify({ name, prompt, ...more })}`;

async function openTrigger(client: Client, who: "person" | "all", type: string) {
  return eventually(`a ${type} is open`, async () => {
    const { triggers } = await client.listTriggers({ for: who });
    return triggers.find((each) => each.type === type || each.payload["originalType"] === type);
  });
}

async function said(client: Client, id: string): Promise<string> {
  const { text } = await client.transcript({ id });
  return text;
}

/**
 * Returns the result of the last call of a tool. The whole transcript would not do: it also contains the
 * prompt, which names every option.
 */
async function replyTo(client: Client, id: string, tool = "ask_user_question"): Promise<string> {
  const replies = await toolReplies(client, id, tool);
  return replies.at(-1)?.text ?? "no reply";
}

async function agentTexts(client: Client, id: string): Promise<string[]> {
  const { entries } = await client.entries({ id, limit: 1000 });
  return entries
    .filter((entry) => entry.author === "agent" && entry.kind === "text")
    .map((entry) => entry.body.text);
}

describe("triggers", { concurrency: 3 }, () => {
  test("a root's question goes to the person, and the answer comes into the call that asked", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const prompt = `${ask("Which dataset?")}\nsim> say end`;
      const { session } = await client.create({ name: "perf", cwd: home.work, prompt });
      const trigger = await openTrigger(client, "person", "ask_user_question");
      assert.equal((await client.get({ id: session.id })).session.waiting?.on, "trigger");
      await client.respond({ id: trigger.shortId, response: "small" });
      await allQuiet(client, session.id);
      assert.match(await replyTo(client, session.id), /Answered by the user:\nsmall$/);
      const late = await client
        .respond({ id: trigger.id, response: "full" })
        .catch((error: unknown) => error);
      assert.equal((late as { code: string }).code, "already_answered");
      const { messages } = await client.inbox({ id: session.id, all: true });
      assert.deepEqual(
        messages.filter((each) => each.kind === "answer").map((each) => [each.status, each.carrier]),
        [["landed", "tool"]],
      );
    } finally {
      await home.close();
    }
  });

  test("a child's question reaches its parent as data with an id, and is escalated and answered after a restart", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const prompt = `${spawn("kid", `${ask("Which dataset?")}\nsim> say kid end`)}\nsim> say waiting`;
      const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
      const trigger = await openTrigger(client, "all", "ask_user_question");
      assert.equal(trigger.toId, root.id);
      await eventually("the parent was told", async () =>
        (await said(client, root.id)).includes("asks and waits"),
      );
      await client.escalate({ id: trigger.id, context: "either is fine for me" });
      await home.kill();
      const again = await home.start();
      const up = await openTrigger(again, "person", "ask_user_question");
      assert.equal(up.type, "escalate");
      assert.equal(up.context, "either is fine for me");
      await again.respond({ id: up.id, response: "full" });
      const sessions = await allQuiet(again, root.id);
      assert.ok(sessions.every((each) => each.outcome === "completed"));
      const { triggers } = await again.triggers({ id: sessions[1]!.id });
      const asked = triggers.filter((each) => each.type !== "session_complete");
      assert.deepEqual(new Set(asked.map((each) => each.status)), new Set(["answered"]));
      assert.match(await replyTo(again, sessions[1]!.id), /Answered by the user:\nfull$/);
      assert.equal((await callbacksTo(again, root.id)).length, 1);
      await checkInvariants(again, root.id);
    } finally {
      await home.close();
    }
  });

  test("a plan is edited, submitted again and approved", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const plan = (title: string): string =>
        `sim> tool plan_review ${JSON.stringify({ title, steps: ["one", "two"] })}`;
      const prompt = [plan("first"), plan("second"), "sim> say built"].join("\n");
      const { session } = await client.create({ name: "planner", cwd: home.work, prompt });
      const first = await openTrigger(client, "person", "plan_review");
      const empty = await client.respond({ id: first.id, action: "edit" }).catch((error: unknown) => error);
      assert.equal((empty as { code: string }).code, "bad_answer");
      await client.respond({ id: first.id, action: "edit", response: "use three steps" });
      const second = await eventually("the second plan", async () => {
        const { triggers } = await client.listTriggers({ for: "person" });
        return triggers.find((each) => each.id !== first.id && each.type === "plan_review");
      });
      assert.equal(second.payload["revision"], 2);
      await client.respond({ id: second.id, action: "approve" });
      await allQuiet(client, session.id);
      const replies = await toolReplies(client, session.id, "plan_review");
      assert.match(replies[0]!.text, /Changes are wanted by the user:\nuse three steps\n/);
      assert.match(replies[1]!.text, /Approved by the user\./);
      assert.equal((await agentTexts(client, session.id)).at(-1), "built");
    } finally {
      await home.close();
    }
  });

  test("a deadline walks from the parent to the person to the stated default", async () => {
    const home = new TestHome({
      env: { KINFOLD_TRIGGERS_PARENT_MS: "1500", KINFOLD_TRIGGERS_DEFAULT_MS: "5000" },
    });
    let feed: FeedReader | null = null;
    try {
      const client = await home.start();
      feed = new FeedReader(home, { chance: randomFrom(1), cutsMax: 0 });
      await eventually("the feed is open", async () => feed?.firstCursor);
      const prompt = `${spawn("kid", `${ask("Which?", { default: "small" })}\nsim> say kid end`)}\nsim> say waiting`;
      const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
      const closed = await eventually("the question is closed", async () =>
        feed?.events.find(
          ({ type, data }) => type === "trigger.closed" && data["type"] === "ask_user_question",
        ),
      );
      const opened = feed.events.filter(
        ({ type, data }) => type === "trigger.opened" && data["triggerId"] === closed.data["triggerId"],
      );
      assert.deepEqual(
        [...opened.map(({ data }) => data["toPerson"]), closed.data["status"]],
        [false, true, "defaulted"],
      );
      const sessions = await allQuiet(client, root.id);
      assert.match(await replyTo(client, sessions[1]!.id), /the default holds: small$/);
    } finally {
      await feed?.close();
      await home.close();
    }
  });

  test("a finished child is given more work by followUp, and closed by ack", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const prompt = `${spawn("kid", "sim> say one")}\nsim> say waiting`;
      const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
      const [, kid] = await allQuiet(client, root.id);
      const complete = async () => {
        const { triggers } = await client.triggers({ id: kid!.id });
        return triggers.findLast((each) => each.type === "session_complete" && each.status === "open")!;
      };
      await client.respond({ id: (await complete()).id, action: "followUp", response: "sim> say two" });
      await eventually(
        "the second round",
        async () => (await client.get({ id: kid!.id })).session.round === 2,
      );
      await allQuiet(client, root.id);
      assert.deepEqual(await agentTexts(client, kid!.id), ["one", "two"]);
      await client.respond({ id: (await complete()).id, action: "ack" });
      assert.equal((await client.get({ id: kid!.id })).session.status, "ended");
    } finally {
      await home.close();
    }
  });

  test("a vendor's plan is reviewed: sent back with what to change, approved, and in read-only not carried out", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const prompt = "sim> review 1. read the code";
      const { session } = await client.create({ name: "p", cwd: home.work, permission: "ask", prompt });
      const first = await openTrigger(client, "person", "plan_review");
      assert.deepEqual([first.payload["steps"], first.payload["revision"]], [["read the code"], 1]);
      assert.deepEqual(first.actions, ["approve", "edit", "cancel"]);
      await client.respond({ id: first.id, action: "edit", response: "tests too" });
      await allQuiet(client, session.id);
      const text = await said(client, session.id);
      assert.match(text, /sim: keeps planning[^]*tests too[^]*Revise the plan/);
      await client.prompt({ id: session.id, prompt });
      const second = await openTrigger(client, "person", "plan_review");
      await client.respond({ id: second.id, action: "approve" });
      await allQuiet(client, session.id);
      assert.match(await said(client, session.id), /sim: plan approved/);
      const reader = await client.create({ name: "r", cwd: home.work, permission: "read-only", prompt });
      const third = await openTrigger(client, "person", "plan_review");
      await client.respond({ id: third.id, action: "approve" });
      await allQuiet(client, reader.session.id);
      assert.match(await said(client, reader.session.id), /sim: keeps planning[^]*This session is read-only/);
    } finally {
      await home.close();
    }
  });

  test("a vendor's permission request is answered by the person, and a denied one is in the receipt", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const prompt = "sim> permit git push\nsim> permit npm publish\nsim> say end";
      const { session } = await client.create({ name: "pusher", cwd: home.work, prompt });
      const first = await openTrigger(client, "person", "permission");
      await client.respond({ id: first.id, action: "allow" });
      const second = await eventually("the second request", async () => {
        const { triggers } = await client.listTriggers({ for: "person" });
        return triggers.find((each) => each.id !== first.id);
      });
      await client.respond({ id: second.id, action: "deny" });
      await allQuiet(client, session.id);
      const text = await said(client, session.id);
      assert.match(text, /sim: allowed/);
      assert.match(text, /sim: denied/);
      const { receipt } = await client.receipt({ id: session.id });
      assert.equal(receipt.denied.length, 1);
    } finally {
      await home.close();
    }
  });

  test("something fired reaches a session as data, once per key", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const { session } = await client.create({ name: "target", cwd: home.work, prompt: "hello" });
      await allQuiet(client, session.id);
      const fired = { id: session.id, type: "ci.failed", payload: { run: 7, text: "@secret" }, key: "run-7" };
      const first = await client.fire(fired);
      const second = await client.fire(fired);
      assert.equal(first.existing, false);
      assert.equal(second.existing, true);
      await allQuiet(client, session.id);
      const text = await said(client, session.id);
      assert.match(text, /"ci.failed" from outside/);
      assert.ok(!/[^\\]@secret/.test(text));
    } finally {
      await home.close();
    }
  });

  test("a parent's own agent answers its child's question, and the child goes on with that answer", async () => {
    const home = new TestHome({ yaml: SPY_YAML });
    try {
      const client = await home.start();
      const parent = await openSpy(home, client, { name: "parent", prompt: BUSY });
      const prompt = `${ask("Which dataset?")}\nsim> say kid end`;
      await parent.call("spawn_session", { name: "kid", agent: "sim", prompt });
      const looked = await parent.call("wait_session", { timeoutMs: 30_000 });
      const [triggerId] = /(?<=<!-- trigger:)\w+/.exec(looked.text) ?? [];
      assert.match(looked.text, /asks and waits\. Options: small, full\.\n.*\nWhich dataset\?\n/);
      const answered = await parent.call("respond_to_trigger", { triggerId, response: "small" });
      assert.equal(answered.isError, false, answered.text);
      const ended = await parent.call("wait_session", { timeoutMs: 30_000, until: "all" });
      assert.match(ended.text, /kid end/);
      const kid = await childNamed(client, parent.id, "kid");
      assert.match(await replyTo(client, kid.id), /Answered by your parent "parent"[^]*\nsmall\n/);
      const { triggers } = await client.triggers({ id: kid.id });
      const asked = triggers.find((each) => each.type === "ask_user_question");
      assert.deepEqual(
        [asked?.status, asked?.answer?.by],
        ["answered", `its parent "parent" (${parent.session.shortId})`],
      );
      await parent.close();
    } finally {
      await home.close();
    }
  });

  test("a question whose call was cut by the client is answered later, as a message", async () => {
    const home = new TestHome({ yaml: SPY_YAML });
    try {
      const client = await home.start();
      const asker = await openSpy(home, client, { name: "asker", prompt: BUSY });
      const cut = new AbortController();
      const questions = [{ question: "Which dataset?", options: ["small", "full"] }];
      const call = asker.post("ask_user_question", { questions }, cut.signal);
      const trigger = await openTrigger(client, "person", "ask_user_question");
      cut.abort();
      await assert.rejects(call.then((response) => response.text()));
      await client.respond({ id: trigger.id, response: "full" });
      const answer = await eventually("the answer is a message", async () => {
        const { messages } = await client.inbox({ id: asker.id, all: true });
        return messages.find((each) => each.kind === "answer" && each.carrier !== "tool");
      });
      assert.equal(answer.status, "queued");
      await client.cancel({ id: asker.id, turnOnly: true });
      await client.prompt({ id: asker.id, prompt: "go on" });
      await eventually("the answer has landed, once", async () => {
        const { messages } = await client.inbox({ id: asker.id, all: true });
        const answers = messages.filter((each) => each.kind === "answer");
        return answers.length === 1 && answers[0]?.status !== "queued";
      });
      assert.match(
        await said(client, asker.id),
        /The answer to your question "Which dataset\?", by the user\.\s+full\s/,
      );
    } finally {
      await home.close();
    }
  });

  test("an outside system fires with an API key, into its scope and with its right alone", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const start = { name: "target", scope: "default", cwd: home.work, prompt: "hello" };
      const { session } = await client.create(start);
      await allQuiet(client, session.id);
      const key = async (can: ("fire" | "read")[], scope: string) =>
        connect({
          url: home.url,
          token: (await client.createToken({ name: `ci-${can[0]}-${scope}`, can, scope, roots: ["/"] }))
            .secret,
        });
      const fired = { id: session.id, type: "ci.failed", payload: { run: 7 } };
      const firing = await key(["fire"], "default");
      assert.equal((await firing.fire(fired)).existing, false);
      await allQuiet(client, session.id);
      assert.match(await said(client, session.id), /"ci.failed" from outside \("ci-fire-default"\)/);
      const reading = await key(["read"], "default");
      assert.equal(await codeOf(reading.fire(fired)), "forbidden");
      const elsewhere = await key(["fire"], "other");
      assert.equal(await codeOf(elsewhere.fire(fired)), "not_found");
    } finally {
      await home.close();
    }
  });
});

const BUSY = "sim> hang";

async function codeOf(asked: Promise<unknown>): Promise<string | null> {
  return asked.then(
    () => null,
    (error: unknown) => (error as { code: string }).code,
  );
}
