import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Refusal, instructionsFor, toolsFor } from "../../contract/index.ts";
import type { Asked, OperationName } from "../../contract/index.ts";
import type { Call, Operations } from "../../operations/port.ts";
import { bearer, fakeOperations, sampleSession, sessionCaller, start } from "../testing/fake-operations.ts";
import type { Running } from "../testing/fake-operations.ts";

const [root, leaf, attached] = [sessionCaller(), sessionCaller(), sessionCaller()];
const child = sampleSession({ name: "kid", parentId: root.id, url: "http://127.0.0.1:4680/#/sessions/kid" });
const asked: { name: OperationName; input: Record<string, unknown>; call: Call }[] = [];
const open: Client[] = [];
let running: Running;
let onAsk: (call: Call) => Promise<Partial<Asked>>;

before(async () => {
  running = await begin({});
});
beforeEach(() => {
  asked.length = 0;
  running.givenBack.length = 0;
  onAsk = () => Promise.resolve({});
});
after(async () => {
  for (const client of open) await client.close();
  await running.server.close();
});

/** Starts a server whose operations record their calls; only a few return something. */
async function begin(options: Parameters<typeof start>[1]): Promise<Running> {
  const note =
    (name: OperationName, output: (call: Call) => object | Promise<object>) =>
    async (_caller: unknown, input: object, call: Call): Promise<object> => {
      asked.push({ name, input: input as Record<string, unknown>, call });
      return output(call);
    };
  const { effective } = child;
  const spawned = { session: child, status: "running", existing: false, effective, childrenOpen: 1 };
  const trigger = { shortId: "a1b2c3d4", status: "answered", originalId: null };
  const pending: Asked = {
    triggerId: "t",
    shortId: "a1b2c3d4",
    status: "pending",
    by: null,
    action: null,
    response: null,
    answers: null,
    asked: "your parent",
    deliveryId: null,
    taken: [],
  };
  const operations = {
    spawn: note("spawn", () => ({
      ...spawned,
      childrenMax: 8,
      queuedBehind: 0,
      turnsMax: 16,
      metering: "call",
      inherited: { bytes: 0, why: null },
    })),
    ask: note("ask", async (call) => ({ ...pending, ...(await onAsk(call)) })),
    planReview: note("planReview", () => pending),
    subagent: note("subagent", () => ({ results: [], needsYou: [], isOver: true, cursor: null, taken: [] })),
    respond: note("respond", () => ({ trigger, what: "Done." })),
    escalate: note("escalate", () => ({ trigger, what: "Passed on." })),
    fire: note("fire", () => ({
      triggerId: "t".repeat(36),
      sessionId: child.id,
      name: null,
      delivered: "queued",
    })),
    inspect: note("inspect", () => ({ session: child, view: "result", text: "Done.", cursor: null })),
    search: note("search", () => ({
      hits: [],
      cursor: null,
      total: 0,
      isWhole: true,
      near: [],
      elsewhere: null,
    })),
    checkpoint: note("checkpoint", () => ({ checkpointId: child.id, sessionId: root.id, constraints: 0 })),
    models: note("models", () => ({ agents: [], profiles: [], problems: [] })),
  } as unknown as Partial<Operations>;
  const fake = fakeOperations(operations);
  fake.tokens.set("root", root).set("leaf", leaf).set("attached", attached);
  fake.roles.set(leaf.id, "leaf").set(attached.id, "attached");
  return start(fake, options);
}

async function connect(
  token: string,
  own: { url?: string; name?: string; version?: string } = {},
): Promise<Client> {
  const { version } = own;
  const negotiation = version === undefined ? {} : { versionNegotiation: { mode: { pin: version } } };
  const client = new Client({ name: own.name ?? "some-client", version: "1" }, negotiation);
  const url = new URL(`${own.url ?? running.url}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: bearer(token) } }));
  open.push(client);
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown>): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  const [first] = content;
  assert.ok(first?.type === "text");
  return first.text;
}

describe("lists by role", () => {
  for (const version of [undefined, "2026-07-28"]) {
    test(`each role has its own list and instructions (${version ?? "with initialize"})`, async () => {
      for (const [token, role, count] of [
        ["leaf", "leaf", 6],
        ["attached", "attached", 13],
        ["root", "full", 15],
      ] as const) {
        const client = await connect(token, { ...(version !== undefined && { version }) });
        const { tools } = await client.listTools();
        assert.equal(tools.length, count);
        assert.deepEqual(tools, toolsFor(role, { aliases: false }));
        assert.equal(client.getInstructions(), instructionsFor(role));
        assert.ok(Buffer.byteLength(JSON.stringify({ tools })) <= 8_192);
      }
    });
  }

  test("create_session is listed where that is configured", async () => {
    const config = { host: "127.0.0.1", port: 0, allowHosts: [], allowRemote: false, tls: null };
    const other = await begin({ config: { ...config, mcp: { aliases: true } } });
    try {
      const client = await connect("root", { url: other.url });
      assert.equal((await client.listTools()).tools.at(-1)?.name, "create_session");
      await client.close();
    } finally {
      await other.server.close();
    }
  });
});

describe("calls", () => {
  test("every tool reaches its operation", async () => {
    const client = await connect("root");
    const calls: [string, Record<string, unknown>, OperationName][] = [
      ["spawn_session", { prompt: "x" }, "spawn"],
      ["subagent", { tasks: [{ task: "x" }] }, "subagent"],
      ["get_session", { sessionId: "kid" }, "inspect"],
      ["respond_to_trigger", { triggerId: "a1b2c3d4", response: "x" }, "respond"],
      ["escalate_trigger", { triggerId: "a1b2c3d4" }, "escalate"],
      ["fire_trigger", { sessionId: "parent", type: "progress", payload: {} }, "fire"],
      ["ask_user_question", { questions: [{ question: "x" }] }, "ask"],
      ["plan_review", { title: "x", steps: ["y"] }, "planReview"],
      ["session_search", { query: "x" }, "search"],
      ["checkpoint", { summary: "x" }, "checkpoint"],
      ["list_models", {}, "models"],
    ];
    for (const [tool, args, operation] of calls) {
      const text = await call(client, tool, args);
      assert.equal(asked.at(-1)?.name, operation, text);
      assert.equal((JSON.parse(text.split("\n")[0] ?? "") as { unread: number }).unread, 0, tool);
    }
  });

  test("a caller that cannot be woken is told to wait, everyone else not to", async () => {
    const woken = await call(await connect("root"), "spawn_session", { prompt: "x" });
    assert.match(woken, /\nIts page: http.*\nThe result will come to you as a message\./);
    const other = await call(await connect("attached"), "spawn_session", { prompt: "x" });
    assert.match(
      other,
      /\nYour client cannot be woken from outside\..*call wait_session before you end your turn\./,
    );
  });

  test("create_session spawns a child of that profile that inherits nothing", async () => {
    const client = await connect("root");
    await call(client, "create_session", { session_type: "tester", prompt: "x" });
    assert.deepEqual(asked.at(-1)?.input, { id: root.id, prompt: "x", profile: "tester", inherit: "none" });
    assert.match(
      await call(client, "create_session", { prompt: "x" }),
      /^invalid_input: session_type is missing/,
    );
    assert.match(
      await call(client, "create_session", { session_type: "tester", prompt: "x", inherit: "brief" }),
      /^invalid_input: A child of create_session inherits nothing/,
    );
  });

  test("a wrong field inside a list or an object is named, with those that are allowed", async () => {
    const client = await connect("root");
    assert.match(
      await call(client, "spawn_session", { prompt: "x", limits: { minuts: 3 } }),
      /^invalid_input: "limits\.minuts" is not a field here; did you mean "limits\.minutes"\? Allowed: limits\.usd, limits\.tokens, limits\.turns, limits\.minutes\./,
    );
    assert.match(
      await call(client, "subagent", { tasks: [{ task: "x", profil: "y" }] }),
      /^invalid_input: "tasks\.0\.profil" is not a field here; did you mean "tasks\.0\.profile"\? Allowed: tasks\.0\.task, tasks\.0\.profile, tasks\.0\.agent\./,
    );
    assert.match(
      await call(client, "respond_to_trigger", { triggerId: "a1b2c3d4", action: "yes" }),
      /^invalid_input: action must be "approve", "edit", "cancel", "allow", "deny", "followUp" or "ack"\./,
    );
  });
});

describe("asking", () => {
  test("questions, plans and subagents block no longer than the client allows", async () => {
    const client = await connect("root", { name: "codex-mcp-client" });
    await call(client, "ask_user_question", { question: "Which?", timeout_ms: 5 });
    await call(client, "plan_review", { title: "x", steps: ["y"] });
    await call(client, "subagent", { task: "x" });
    assert.deepEqual(
      asked.map(({ input }) => input.capMs),
      [280_000, 280_000, 280_000],
    );
    assert.equal(asked[0]?.input.timeoutMs, 5);
  });

  test("the answer carries the id of its message, and is given back when its reply is not read", async () => {
    const client = await connect("root");
    const answered = {
      status: "answered",
      by: "the user",
      response: "small",
      deliveryId: "e5a9b611",
    } as const;
    onAsk = () => Promise.resolve({ ...answered, taken: ["m1"] });
    assert.match(
      await call(client, "ask_user_question", { question: "Which?" }),
      /^\{.*"status":"answered".*\}\n<!-- trigger:e5a9b611 -->\n\[Kinfold\] Answered by the user:\nsmall$/,
    );
    assert.deepEqual(running.givenBack, []);
    const entered = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    onAsk = async ({ signal }) => {
      entered.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      setImmediate(left.resolve);
      return { ...answered, taken: ["m2"] };
    };
    const asking = client.callTool({ name: "ask_user_question", arguments: { question: "Which?" } });
    await entered.promise;
    await client.close();
    await assert.rejects(asking);
    await left.promise;
    await new Promise(setImmediate);
    assert.deepEqual(running.givenBack, [{ caller: root, messageIds: ["m2"] }]);
  });

  test("what later versions bring is refused by its operation, in one line", async () => {
    const client = await connect("root");
    onAsk = () => Promise.reject(new Refusal("not_available", "Not in this version.\nUse another."));
    assert.equal(
      await call(client, "ask_user_question", { question: "x" }),
      "not_available: Not in this version. Use another.",
    );
  });
});

describe("prompts", () => {
  test("review, race, explore and family are offered with what they take", async () => {
    const client = await connect("root");
    const { prompts } = await client.listPrompts();
    assert.deepEqual(
      prompts.map(({ name, arguments: args = [] }) => [name, ...args.map((each) => each.name)]),
      [["review", "what", "agent"], ["race", "task", "agents"], ["explore", "question", "where"], ["family"]],
    );
  });

  test("each becomes the user's words, with what was given in its place", async () => {
    const client = await connect("root");
    const text = async (name: string, args: Record<string, string> = {}): Promise<string> => {
      const { messages } = await client.getPrompt({ name, arguments: args });
      assert.equal(messages.length, 1);
      assert.equal(messages[0]?.role, "user");
      const { content } = messages[0];
      assert.ok(content.type === "text");
      return content.text;
    };
    assert.match(await text("review"), /^Have my uncommitted changes reviewed[^]*profile "reviewer"/);
    assert.match(
      await text("review", { what: "src/auth", agent: "codex" }),
      /^Have src\/auth reviewed[^]*agent "codex"/,
    );
    assert.match(
      await text("race", { task: "Fix the flaky test." }),
      /^Let several .* race on this task: Fix the flaky test\./,
    );
    assert.match(
      await text("explore", { question: "Who calls it?" }),
      /Who calls it\?[^]*profile "explorer"/,
    );
    assert.match(await text("family"), /^Call list_sessions/);
  });

  test("a missing argument and an unknown prompt are refused with what is allowed", async () => {
    const client = await connect("root");
    await assert.rejects(client.getPrompt({ name: "race", arguments: { task: " " } }), /"task" is missing/);
    await assert.rejects(client.getPrompt({ name: "reviw" }), /Did you mean review\? Allowed: review, race/);
  });
});
