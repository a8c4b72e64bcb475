import assert from "node:assert/strict";
import { after, before, beforeEach, describe, mock, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Refusal, shortId, toolsFor } from "../../contract/index.ts";
import type { InputOf, WaitChildrenOutput } from "../../contract/index.ts";
import type { Call } from "../../operations/port.ts";
import {
  PERSON,
  bearer,
  fakeOperations,
  sampleSession,
  sessionCaller,
  start,
} from "../testing/fake-operations.ts";
import type { Running } from "../testing/fake-operations.ts";

const TOOLS = toolsFor("full", { aliases: false });
const me = sessionCaller();
const other = sessionCaller();
const child = sampleSession({ name: "auth-tests", parentId: me.id });
let running: Running;
let spawned: { input: InputOf<"spawn">; call: Call }[] = [];
let waited: InputOf<"waitChildren">[] = [];
let onWait: (call: Call) => Promise<Partial<WaitChildrenOutput>>;
const open: Client[] = [];

before(async () => {
  const fake = fakeOperations({
    family: async (caller) => ({
      you: caller.id,
      open: 0,
      unread: 3,
      sessions: [sampleSession({ id: caller.id, name: "release" })],
      triggers: [],
    }),
    spawn: async (_caller, input, call) => {
      spawned.push({ input, call });
      if (input.prompt === "one too many")
        throw new Refusal("limit_children", "8 of 8 children are at work.\nWait for one.");
      if (input.prompt === "bug") throw new Error("secret inside");
      const { effective } = child;
      return {
        session: child,
        status: "running",
        existing: false,
        effective,
        childrenOpen: 1,
        childrenMax: 8,
        queuedBehind: 0,
        turnsMax: 16,
        metering: "call",
        inherited: { bytes: 0, why: null },
      };
    },
    waitChildren: async (_caller, input, call) => {
      waited.push(input);
      const nothing = {
        done: [],
        needsYou: [],
        working: [],
        timedOut: true,
        capped: false,
        waitedMs: 0,
        cursor: "w1",
        taken: [],
      };
      return { ...nothing, ...(await onWait(call)) };
    },
  });
  fake.tokens.set("mine", me).set("other", other);
  running = await start(fake);
});
beforeEach(() => {
  spawned = [];
  waited = [];
  running.givenBack.length = 0;
  onWait = () => Promise.resolve({});
});
after(async () => {
  for (const client of open) await client.close();
  await running.server.close();
});

interface Options {
  readonly token?: string;
  readonly name?: string;
  /** The only protocol version that the client accepts: an older one or the modern one. */
  readonly version?: string;
}

async function connect({ token = "mine", name = "some-client", version }: Options = {}): Promise<Client> {
  const isModern = version === "2026-07-28";
  const client = new Client(
    { name, version: "1" },
    isModern
      ? { versionNegotiation: { mode: { pin: version } } }
      : { ...(version !== undefined && { supportedProtocolVersions: [version] }) },
  );
  const transport = new StreamableHTTPClientTransport(new URL(`${running.url}/mcp`), {
    requestInit: { headers: bearer(token) },
  });
  await client.connect(transport);
  open.push(client);
  return client;
}

async function call(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
  meta: Record<string, unknown> = {},
): Promise<{ text: string; isError: boolean }> {
  const result = await client.callTool({ name, arguments: args, _meta: meta });
  assert.equal(result.structuredContent, undefined);
  const [content] = result.content;
  assert.ok(content?.type === "text");
  return { text: content.text, isError: result.isError === true };
}

const ERAS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

describe("the protocol", () => {
  for (const version of ERAS) {
    test(`clients of ${version} get the tools and call them`, async () => {
      const client = await connect({ version });
      assert.deepEqual((await client.listTools()).tools, TOOLS);
      assert.match(client.getInstructions() ?? "", /^Kinfold hands work to other coding agents/);
      const { text } = await call(client, "list_sessions");
      assert.equal(
        text.split("\n")[0],
        JSON.stringify({ you: shortId(me.id), open: 0, unread: 3, triggers: 0 }),
      );
    });
  }

  test("the list is the same bytes each time, and small", async () => {
    const list = async (): Promise<string> => {
      const response = await post({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      return response.text();
    };
    const first = await list();
    assert.equal(await list(), first);
    const { result } = JSON.parse(/^data: (.*)$/m.exec(first)?.[1] ?? "") as { result: object };
    assert.ok(Buffer.byteLength(JSON.stringify(result)) <= 8_192);
  });

  test("a person's token is refused with where to ask instead", async () => {
    const response = await post({ jsonrpc: "2.0", id: 1, method: "tools/list" }, PERSON);
    assert.equal(response.status, 403);
    assert.match(await response.text(), /"forbidden".*sessions that Kinfold runs/);
  });

  test("what is not JSON, not a message or of another media type is refused", async () => {
    const headers = { ...bearer("mine"), accept: "application/json, text/event-stream" };
    const url = `${running.url}/mcp`;
    const json = { ...headers, "content-type": "application/json" };
    assert.equal((await fetch(url, { method: "POST", headers: json, body: "{" })).status, 400);
    assert.equal((await fetch(url, { method: "POST", headers: json, body: "" })).status, 400);
    assert.equal((await fetch(url, { method: "POST", headers: json, body: "[1,2]" })).status, 400);
    assert.equal(
      (
        await fetch(url, {
          method: "POST",
          headers: { ...headers, "content-type": "text/plain" },
          body: "{}",
        })
      ).status,
      415,
    );
    for (const method of ["GET", "DELETE", "PUT"])
      assert.equal((await fetch(url, { method, headers })).status, 405, method);
  });

  test("two clients with the same request ids never see each other's answers in 10,000 calls", async () => {
    const [posts, callsInEach] = [250, 20];
    const ask = async (token: string, you: string, first: number): Promise<void> => {
      const ids = Array.from({ length: callsInEach }, (_, index) => first + index);
      const params = { name: "list_sessions", arguments: {} };
      const response = await post(
        ids.map((id) => ({ jsonrpc: "2.0", id, method: "tools/call", params })),
        token,
      );
      const answers = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) =>
        JSON.parse(data ?? ""),
      );
      assert.deepEqual(
        answers.map((answer) => answer.id).toSorted((x, y) => x - y),
        ids,
      );
      for (const answer of answers)
        assert.ok(answer.result.content[0].text.startsWith(`{"you":"${shortId(you)}"`));
    };
    const lanes = Array.from({ length: 4 }, async (_, lane) => {
      for (let at = lane; at < posts; at += 4) {
        await Promise.all([ask("mine", me.id, at * callsInEach), ask("other", other.id, at * callsInEach)]);
      }
    });
    await Promise.all(lanes);
  });
});

function post(message: unknown, token = "mine"): Promise<Response> {
  return fetch(`${running.url}/mcp`, {
    method: "POST",
    headers: {
      ...bearer(token),
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify(message),
  });
}

describe("spawn_session", () => {
  test("answers with a line of JSON, what was applied, and what to do next", async () => {
    const { text, isError } = await call(await connect(), "spawn_session", {
      prompt: "test it",
      name: "auth-tests",
    });
    assert.equal(isError, false);
    assert.deepEqual(text.split("\n"), [
      JSON.stringify({ session_id: child.shortId, name: "auth-tests", status: "running", unread: 0 }),
      "Started sim sim-1 in /src/shop (shared); permission workspace; inherits nothing. 1 of 8 children at work.",
      "The result will come to you as a message. Go on with other work, or end your turn if there is none. Do not poll; do not spawn this again.",
    ]);
    assert.equal(spawned[0]?.input.id, me.id);
    assert.equal(spawned[0]?.call.callId, null);
  });

  test("a refusal is one line, and a bug tells nothing of its inside", async () => {
    const client = await connect();
    const refused = await call(client, "spawn_session", { prompt: "one too many" });
    assert.deepEqual(refused, {
      text: "limit_children: 8 of 8 children are at work. Wait for one.",
      isError: true,
    });
    const bug = await call(client, "spawn_session", { prompt: "bug" });
    assert.ok(bug.isError && bug.text.startsWith("internal: ") && !bug.text.includes("secret"));
    const unknown = await call(client, "spawn_sesion", { prompt: "x" });
    assert.match(unknown.text, /^not_found: .*Did you mean spawn_session\? Allowed: spawn_session, subagent/);
    const wrong = await call(client, "spawn_session", { promt: "x" });
    assert.match(wrong.text, /^invalid_input: "promt" is not a field here; did you mean "prompt"\?/);
    assert.match(
      (await call(client, "spawn_session", {})).text,
      /^invalid_input: prompt is missing; it must be text\.$/,
    );
    assert.match((await call(client, "cancel_session", {})).text, /^invalid_input: sessionId is missing/);
  });

  test("kinfold/json answers with the operation's own JSON", async () => {
    const client = await connect({ version: "2026-07-28" });
    const done = await call(client, "spawn_session", { prompt: "x" }, { "kinfold/json": true });
    assert.equal((JSON.parse(done.text) as { session: { id: string } }).session.id, child.id);
    const refused = await call(client, "spawn_session", { prompt: "one too many" }, { "kinfold/json": true });
    assert.equal((JSON.parse(refused.text) as { error: { code: string } }).error.code, "limit_children");
    assert.equal(refused.isError, true);
  });

  test("only an id that is unique to the call becomes its key", async () => {
    const client = await connect();
    await call(
      client,
      "spawn_session",
      { prompt: "x" },
      { "claudecode/toolUseId": "toolu_1", progressToken: 7 },
    );
    assert.equal(spawned[0]?.call.callId, "toolu_1");
  });
});

describe("wait_session", () => {
  test("blocks no longer than the client allows", async () => {
    const caps: [string, string | undefined, number][] = [
      ["some-client", undefined, 45_000],
      ["kinfold-sim", undefined, 600_000],
      ["codex-mcp-client", "2025-06-18", 280_000],
      ["claude-code", "2026-07-28", 110_000],
      ["gemini-cli-mcp-client", undefined, 570_000],
    ];
    for (const [name, version, capMs] of caps) {
      await call(await connect({ name, version }), "wait_session");
      assert.equal(waited.at(-1)?.capMs, capMs, name);
    }
  });

  test("one session_id is the source's form", async () => {
    const client = await connect();
    onWait = () =>
      Promise.resolve({
        timedOut: false,
        done: [
          {
            sessionId: child.id,
            shortId: child.shortId,
            name: "auth-tests",
            outcome: "completed",
            result: "All pass.",
            lastWords: null,
            error: null,
            deliveryId: "7c1e4b90",
            delivered: false,
            block: "",
          },
        ],
      });
    const { text } = await call(client, "wait_session", { session_id: child.id, timeout_ms: 500 });
    assert.deepEqual([waited[0]?.ids, waited[0]?.sourceForm, waited[0]?.timeoutMs], [[child.id], true, 500]);
    assert.match(
      text,
      /<!-- trigger:7c1e4b90 -->[^]*<child-output id="7c1e4b90">\nAll pass\.\n<\/child-output/,
    );
  });

  test("a caller that goes away aborts the wait, and what it had taken is given back", async () => {
    for (const version of ["2025-06-18", "2026-07-28"]) {
      const client = await connect({ version });
      const entered = Promise.withResolvers<void>();
      const left = Promise.withResolvers<void>();
      onWait = async ({ signal }) => {
        entered.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        setImmediate(left.resolve);
        return { taken: ["m1", "m2"] };
      };
      const waiting = client.callTool({ name: "wait_session", arguments: {} });
      await entered.promise;
      await client.close();
      await assert.rejects(waiting);
      await left.promise;
      await new Promise(setImmediate);
      assert.deepEqual(running.givenBack.splice(0), [{ caller: me, messageIds: ["m1", "m2"] }], version);
    }
  });

  test("a call cancelled by its client ends and takes nothing", async () => {
    for (const version of ["2025-06-18", "2026-07-28"]) {
      const client = await connect({ version });
      const entered = Promise.withResolvers<void>();
      const aborted = Promise.withResolvers<void>();
      onWait = async ({ signal }) => {
        entered.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        aborted.resolve();
        throw signal.reason;
      };
      const controller = new AbortController();
      const waiting = client.callTool({ name: "wait_session", arguments: {} }, { signal: controller.signal });
      await entered.promise;
      controller.abort();
      await assert.rejects(waiting);
      await aborted.promise;
    }
  });

  test("progress is told every ten seconds to a client that asked for it", async () => {
    for (const version of ["2025-06-18", "2026-07-28"]) {
      const client = await connect({ version });
      const entered = Promise.withResolvers<void>();
      const go = Promise.withResolvers<Partial<WaitChildrenOutput>>();
      onWait = () => {
        entered.resolve();
        return go.promise;
      };
      mock.timers.enable({ apis: ["setInterval"] });
      const told = Promise.withResolvers<number>();
      const onprogress = ({ progress }: { progress: number }): void => told.resolve(progress);
      const waiting = client.callTool({ name: "wait_session", arguments: {} }, { onprogress });
      await entered.promise;
      mock.timers.tick(10_000);
      assert.equal(await told.promise, 1, version);
      mock.timers.reset();
      go.resolve({});
      await waiting;
    }
  });

  test("a revoked token ends an open wait", async () => {
    running.tokens.set("brief", me);
    const client = await connect({ token: "brief" });
    const entered = Promise.withResolvers<void>();
    onWait = async ({ signal }) => {
      entered.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw signal.reason;
    };
    const waiting = call(client, "wait_session");
    await entered.promise;
    running.tokens.delete("brief");
    assert.match((await waiting).text, /^unauthorized: /);
  });
});
