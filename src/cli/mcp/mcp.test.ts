import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, describe, it } from "node:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { connect as connectClient } from "../../client/index.ts";
import { readDaemonFile } from "../../config/daemon-file.ts";
import { instructionsFor, toolsFor } from "../../contract/index.ts";
import { CliHome, MAIN } from "../testing/process.ts";
import { readToken } from "../daemon/home.ts";
import { pathsIn } from "../../config/paths.ts";
import { LineReader } from "../../text/line-reader.ts";

const cli = new CliHome();
const daemonFile = join(cli.home, "daemon.json");
const open: Client[] = [];

interface Options {
  readonly name?: string;
  readonly env?: Record<string, string>;
  /** Pins the protocol version. Set by tests of the version that has no `initialize`. */
  readonly version?: string;
}

/** Connects a real MCP client that starts the real command, as an agent does. */
async function connect({ name = "claude-code", env = {}, version }: Options = {}): Promise<Client> {
  const negotiation = version === undefined ? {} : { versionNegotiation: { mode: { pin: version } } };
  const client = new Client({ name, version: "1" }, negotiation);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, "mcp"],
    env: { ...(cli.env as Record<string, string>), ...env },
    cwd: cli.person,
    stderr: "ignore",
  });
  await client.connect(transport);
  open.push(client);
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  const [first] = content;
  assert.ok(first?.type === "text");
  return first.text;
}

function headOf(text: string): Record<string, never> {
  return JSON.parse(text.split("\n")[0] ?? "") as Record<string, never>;
}

function person(): ReturnType<typeof connectClient> {
  const token = readToken(pathsIn(cli.home), {});
  return connectClient({ url: readDaemonFile(daemonFile)!.url, token: token ?? "" });
}

/** Nothing listens at this address, so every answer comes from the command itself. */
const NO_DAEMON = { KINFOLD_URL: "http://127.0.0.1:9" };

afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});
after(async () => {
  await cli.run(["down", "--force"]);
  cli.remove();
});

describe("kinfold mcp without a daemon", () => {
  for (const version of [undefined, "2026-07-28"]) {
    it(`answers what a client asks first by itself (${version ?? "with initialize"})`, async () => {
      const client = await connect({ env: NO_DAEMON, ...(version !== undefined && { version }) });
      assert.equal(client.getInstructions(), instructionsFor("attached"));
      assert.deepEqual((await client.listTools()).tools, toolsFor("attached", { aliases: false }));
    });
  }

  it("a call without a daemon gets an answer that says so, not a time-out", async () => {
    const client = await connect({ env: NO_DAEMON });
    assert.match(await call(client, "list_sessions"), /^not_available: The daemon did not answer: /);
    await assert.rejects(client.listPrompts(), /The daemon did not answer/);
  });

  it("an agent that we started gets no tools here: it already has them", async () => {
    const client = await connect({ env: { ...NO_DAEMON, KINFOLD_LEASE: "some lease" } });
    assert.deepEqual((await client.listTools()).tools, []);
  });

  it("lists create_session if aliases are configured", async () => {
    const other = new CliHome();
    writeFileSync(join(other.home, "kinfold.yaml"), "mcp:\n  aliases: true\n");
    const client = await connect({ env: { ...NO_DAEMON, KINFOLD_HOME: other.home } });
    assert.equal((await client.listTools()).tools.at(-1)?.name, "create_session");
    await client.close();
    other.remove();
  });

  it("a line that is not JSON gets the protocol's parse error", async () => {
    const { out } = await cli.run(["mcp"], { input: "{\n", env: NO_DAEMON });
    assert.equal((JSON.parse(out) as { error: { code: number } }).error.code, -32_700);
  });

  it("only a line feed ends a message, and a character may be cut anywhere", () => {
    const bytes = Buffer.from('{"a":"\u2028é"}\n{"b":1}\n');
    const reader = new LineReader();
    const lines = [...bytes].flatMap((byte) => reader.push(Uint8Array.of(byte)));
    assert.deepEqual(lines, ['{"a":"\u2028é"}', '{"b":1}']);
  });
});

describe("kinfold mcp with a daemon behind it", () => {
  it("starts the daemon, and the client becomes an attached session", async () => {
    const client = await connect();
    const spawned = await call(client, "spawn_session", { prompt: "hi", name: "kid", agent: "sim" });
    assert.match(spawned, /\nYour client cannot be woken from outside\./);
    const ended = await call(client, "wait_session", { session_id: "kid" });
    assert.match(ended, /<child-output id="[0-9a-f]{8}">\nsim: hi\n/);
    const you = headOf(await call(client, "list_sessions"))["you"];
    const { session } = await person().get({ id: String(you) });
    assert.deepEqual(
      [session.origin, session.agent, session.source, session.status, session.effective.permission],
      ["attached", "claude", "mcp", "idle", "ask"],
    );
    assert.deepEqual((await person().turns({ id: session.id })).turns, []);
    assert.equal((await client.listPrompts()).prompts.length, 4);
  });

  it("a result arrives once: a wait that returned it consumes its callback", async () => {
    const client = await connect();
    await call(client, "spawn_session", { prompt: "hi", name: "once", agent: "sim" });
    const first = await call(client, "wait_session", {});
    assert.match(first, /This result will not be sent to you again\./);
    assert.equal(headOf(await call(client, "list_sessions"))["unread"], 0);
    assert.match(
      await call(client, "wait_session", { ids: ["once"], timeoutMs: 0 }),
      /You have read this before/,
    );
  });

  it("two clients are two sessions, and neither reaches the other's children", async () => {
    const [one, two] = await Promise.all([connect({ name: "codex" }), connect({ name: "my editor" })]);
    await call(one, "spawn_session", { prompt: "hi", name: "ones", agent: "sim" });
    await call(one, "wait_session", {});
    assert.match(await call(two, "cancel_session", { sessionId: "ones" }), /^forbidden: .*another family/);
    assert.match(await call(two, "list_sessions"), /\n[0-9a-f]{8} my editor, you, root, /);
  });

  it("the daemon gives the same first answers as the command", async () => {
    const client = await connect();
    const own = [await client.listTools(), client.getInstructions()];
    await call(client, "list_sessions");
    const { token } = await person().attach({ client: "some-client", cwd: cli.person });
    const known = await connect({ env: { KINFOLD_TOKEN: token } });
    assert.deepEqual([await known.listTools(), known.getInstructions()], own);
    assert.equal(headOf(await call(known, "list_sessions"))["open"], 0);
  });

  it("a daemon that died is started again, and the session and its children are the same", async () => {
    const client = await connect();
    await call(client, "spawn_session", { prompt: "hi", name: "survivor", agent: "sim" });
    await call(client, "wait_session", {});
    const before = headOf(await call(client, "list_sessions"))["you"];
    const { pid } = readDaemonFile(daemonFile)!;
    process.kill(pid, "SIGKILL");
    const family = await call(client, "list_sessions");
    assert.equal(headOf(family)["you"], before);
    assert.match(family, /"survivor" [0-9a-f]{8} sim: completed/);
    assert.notEqual(readDaemonFile(daemonFile)!.pid, pid);
  });

  it("a call that the client cancels ends at the daemon as well", async () => {
    const client = await connect();
    await call(client, "spawn_session", { prompt: "sim> hang", name: "hanging", agent: "sim" });
    const controller = new AbortController();
    const waiting = client.callTool({ name: "wait_session", arguments: {} }, { signal: controller.signal });
    controller.abort();
    await assert.rejects(waiting);
    assert.match(await call(client, "cancel_session", { sessionId: "hanging" }), /^\{"cancelled":true/);
  });

  it("answers that are still coming are written when the input ends", async () => {
    const lines = [
      { jsonrpc: "2.0", id: 1, method: "tools/list" },
      { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "list_models", arguments: {} } },
    ];
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const { code, out } = await cli.run(["mcp"], { input });
    assert.equal(code, 0);
    const ids = out
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { id: number }).id);
    assert.deepEqual(ids, [1, 2]);
  });
});
