import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { silentLog } from "../../log.ts";
import { marked, open, type OpenOptions, prepare } from "../driver.spec.ts";
import type { Driver, OpenResult } from "../port.ts";
import { createProcessHost } from "../process/process.ts";
import { createAcpDriver } from "./driver.ts";

let folder: string;
const host = createProcessHost({ sandbox: "auto", log: silentLog });

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kinfold-acp-"));
});
after(() => rm(folder, { recursive: true, force: true }));

function driverOf(...command: string[]): Driver {
  const howToInstall = "npm install -g it";
  return createAcpDriver({ name: "odd", title: "Odd", command, env: [], howToInstall, host, log: silentLog });
}

async function openOdd(command: string, options: OpenOptions = {}): Promise<OpenResult> {
  const { request, leaseId } = prepare(folder, options);
  const result = await driverOf("/bin/sh", "-c", command).open(request);
  assert.deepEqual(await marked(leaseId), [], "nothing is left of an agent that could not be opened");
  return result;
}

const reasonOf = (result: OpenResult): string => (result.ok ? "opened" : result.reason);
const messageOf = (result: OpenResult): string => (result.ok ? "" : result.message);

/** The start of a script: answers the requests that open a session. Each test appends its own lines. */
const READY = `
  read line; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
  read line; echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}'
  read line;`;

describe("an agent that misbehaves at its start", () => {
  it("and exits at once is a result with its exit code and standard error", async () => {
    const result = await openOdd("echo no such model >&2; exit 3");
    assert.equal(reasonOf(result), "exited");
    assert.equal(messageOf(result), "the agent exited with code 3: no such model");
  });

  it("and never answers initialize runs into the time limit", async () => {
    const result = await openOdd("setsid sleep 600 & sleep 600", { startMs: 300 });
    assert.equal(reasonOf(result), "timeout");
    assert.match(messageOf(result), /300 ms/);
  });

  it("and floods its output with an endless line is ended with a clear reason", async () => {
    const result = await openOdd("cat /dev/zero");
    assert.equal(reasonOf(result), "protocol");
    assert.match(messageOf(result), /line of more than 64 MB/);
  });

  it("and floods its output with lines of noise runs into the time limit", async () => {
    assert.equal(reasonOf(await openOdd("yes", { startMs: 500 })), "timeout");
  });

  it("and floods its errors keeps only the last of them", async () => {
    const result = await openOdd("yes error | head -c 5000000 >&2; echo last >&2; exit 1");
    assert.match(messageOf(result), /last$/);
  });

  it("and writes half a line has exited", async () => {
    assert.equal(reasonOf(await openOdd(`printf '{"jsonrpc":"2.0","id":0,"res'`)), "exited");
  });

  it("and closes its output but lives on is ended", async () => {
    // Runs without bubblewrap, which would keep the output open after the agent has closed it.
    const bare = createProcessHost({ sandbox: "guard", log: silentLog });
    const command = ["/bin/sh", "-c", "exec 1>&-; sleep 600"];
    const driver = createAcpDriver({
      name: "odd",
      title: "Odd",
      command,
      env: [],
      host: bare,
      log: silentLog,
    });
    const { request, leaseId } = prepare(folder);
    assert.match(messageOf(await driver.open(request)), /closed its output/);
    assert.deepEqual(await marked(leaseId), []);
  });

  it("and refuses initialize is a protocol failure in its own words", async () => {
    const refuse = `read line; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"bad day"}}'; sleep 600`;
    const result = await openOdd(refuse);
    assert.deepEqual([reasonOf(result), messageOf(result)], ["protocol", "bad day"]);
  });

  it("and requires a sign-in says so", async () => {
    const result = await openOdd(
      `read line; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Authentication required"}}'; sleep 600`,
    );
    assert.equal(reasonOf(result), "not_signed_in");
  });

  it("and cannot load sessions is not asked to", async () => {
    const result = await openOdd(`${READY} sleep 600`, { load: "old" });
    assert.equal(reasonOf(result), "no_load");
  });

  for (const [what, code, message, reason] of [
    ["says in the protocol's code that it has no such session", -32_002, "Resource not found", "no_session"],
    ["says in words that it has no such session", -32_603, "Session not found: old", "no_session"],
    ["names no conversation", -32_603, "No conversation found with session ID: old", "no_session"],
    ["calls the session's id invalid", -32_603, 'Invalid session identifier "old"', "no_session"],
    ["cannot read the session", -32_603, "Invalid session data: unexpected end of JSON", "load_failed"],
    ["refuses the load otherwise", -32_603, "Internal error", "load_failed"],
  ] as const) {
    it(`and ${what}: ${reason}`, async () => {
      const error = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code, message } });
      const capable = '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}';
      const result = await openOdd(
        `read line; echo '{"jsonrpc":"2.0","id":0,"result":${capable}}'; read line; echo '${error}'; sleep 600`,
        { load: "old" },
      );
      assert.equal(reasonOf(result), reason);
    });
  }

  it("and is not installed says how to install it", async () => {
    const driver = driverOf("no-such-agent", "--acp");
    const result = await driver.open(prepare(folder).request);
    assert.equal(reasonOf(result), "not_installed");
    const agent = await driver.probe();
    assert.deepEqual([agent.installed, agent.howToInstall], [false, "npm install -g it"]);
    assert.match(agent.problem ?? "", /no-such-agent/);
  });

  it("because its folder is gone says so", async () => {
    const result = await driverOf("/bin/sh").open(prepare(join(folder, "gone")).request);
    assert.match(messageOf(result), /does not exist/);
  });
});

describe("an agent that misbehaves in a prompt", () => {
  async function promptOdd(command: string) {
    const driver = driverOf("/bin/sh", "-c", `${READY} ${command}`);
    const agent = await open({ driver, cwd: folder, noProcesses: false, end: async () => {} });
    const end = await agent.handle.prompt("hello");
    await agent.handle.stop(0);
    assert.deepEqual(await marked(agent.leaseId), []);
    return { end, agent };
  }

  it("and is killed by a signal ends the prompt with that signal", async () => {
    const { end } = await promptOdd("kill -9 $$");
    assert.deepEqual([end.stopReason, end.exit?.signal], ["exited", "SIGKILL"]);
  });

  it("and exits while a descendant keeps its output open still ends the prompt", async () => {
    const { end } = await promptOdd("setsid sleep 600 & exit 4");
    assert.deepEqual([end.stopReason, end.exit?.code], ["exited", 4]);
  });

  it("and gives a stop reason that does not exist has failed", async () => {
    const { end } = await promptOdd(
      `echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"bored"}}'; sleep 600`,
    );
    assert.deepEqual([end.stopReason, end.error], ["error", "unknown stop reason bored"]);
  });

  it("and reports an error as a normal end, as Codex does, has failed", async () => {
    const update = (fields: string): string =>
      `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{${fields}}}}';`;
    const { end } = await promptOdd(
      update(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"stream lost"}`) +
        update(
          `"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"systemError"}}}`,
        ) +
        `echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'; sleep 600`,
    );
    assert.deepEqual([end.stopReason, end.error], ["error", "stream lost"]);
  });

  it("and sends updates of a sub-session is not mistaken for this session", async () => {
    const chunk = `"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"aside"}`;
    const { agent } = await promptOdd(
      `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{${chunk}}}}'; ` +
        `echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'; sleep 600`,
    );
    assert.deepEqual(agent.texts(), []);
  });

  it("and sends a request that we do not support gets an error as the answer", async () => {
    const { agent } = await promptOdd(
      `echo '{"jsonrpc":"2.0","id":9,"method":"terminal/create","params":{}}'; read line; ` +
        `code=$(echo "$line" | sed 's/.*"code":\\(-*[0-9]*\\).*/\\1/'); ` +
        `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` +
        `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'$code'"}}}}'; ` +
        `echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'; sleep 600`,
    );
    assert.deepEqual(agent.texts(), ["-32601"]);
  });
});

describe("an agent made with the protocol's own SDK", () => {
  it("that rejects the requested model is not opened, and the reason lists the models it offers", async () => {
    const path = join(folder, "choosy-agent.ts");
    await writeFile(path, SDK_AGENT);
    const under = {
      driver: driverOf(process.execPath, path),
      cwd: folder,
      noProcesses: false as const,
      end: async () => {},
    };
    await assert.rejects(
      open(under, { model: "none" }),
      /rejected the model none: .*no such model; it offers small, big/,
    );
  });

  it("that knows a model by another name says which one it runs", async () => {
    const path = join(folder, "naming-agent.ts");
    await writeFile(path, SDK_AGENT);
    const driver = driverOf(process.execPath, path);
    const under = { driver, cwd: folder, noProcesses: false as const, end: async () => {} };
    const agent = await open(under, { model: "the-large-one" });
    assert.equal(agent.handle.model, "big");
    await agent.handle.stop(2_000);
  });

  it("is opened, given its model and tools, prompted and stopped", async () => {
    const path = join(folder, "sdk-agent.ts");
    await writeFile(path, SDK_AGENT);
    const driver = driverOf(process.execPath, path);
    const mcp = { url: "http://127.0.0.1:9/mcp", token: "t-1" };
    const under = { driver, cwd: folder, noProcesses: false as const, end: async () => {} };
    const agent = await open(under, { mcp, model: "big", answer: () => ({ kind: "allow" }) });
    const end = await agent.handle.prompt("hello");
    assert.deepEqual(JSON.parse(agent.texts()[0] ?? ""), {
      model: "big",
      servers: [
        {
          type: "http",
          name: "kinfold",
          url: mcp.url,
          headers: [{ name: "Authorization", value: "Bearer t-1" }],
        },
      ],
      permission: { outcome: "selected", optionId: "y" },
    });
    assert.equal(end.stopReason, "max_tokens");
    assert.deepEqual(end.usage, { inputTokens: 5, cachedTokens: 3, outputTokens: 7, usd: null });
    assert.equal(agent.handle.model, "big");
    assert.equal((await driver.probe()).version, "9.9");
    assert.deepEqual((await agent.handle.stop(2_000)).left, []);
  });
});

const SDK_AGENT = `
import { agent, ndJsonStream } from ${JSON.stringify(import.meta.resolve("@agentclientprotocol/sdk/unstable"))};
import { Readable, Writable } from "node:stream";
let model = "small";
let servers = [];
const configOptions = () => {
  const option = { id: "m", name: "Model", category: "model", type: "select", currentValue: model };
  return [{ ...option, options: [{ value: "small", name: "S" }, { value: "big", name: "B" }] }];
};
agent({ name: "made" })
  .onRequest("initialize", () => ({ protocolVersion: 1, agentInfo: { name: "made", version: "9.9" }, agentCapabilities: {} }))
  .onRequest("session/new", ({ params }) => {
    servers = params.mcpServers;
    return { sessionId: "s", configOptions: configOptions() };
  })
  .onRequest("session/set_config_option", ({ params }) => {
    if (params.value === "none") throw new Error("no such model");
    model = params.value === "the-large-one" ? "big" : params.value;
    return { configOptions: configOptions() };
  })
  .onRequest("session/prompt", async ({ client }) => {
    const options = [{ optionId: "n", name: "No", kind: "reject_once" }, { optionId: "y", name: "Yes", kind: "allow_once" }];
    const toolCall = { toolCallId: "c", title: "touch x", kind: "execute" };
    const { outcome } = await client.request("session/request_permission", { sessionId: "s", toolCall, options });
    const text = JSON.stringify({ model, servers, permission: outcome });
    const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
    await client.notify("session/update", { sessionId: "s", update });
    const usage = { inputTokens: 5, outputTokens: 7, totalTokens: 15, cachedReadTokens: 3 };
    return { stopReason: "max_tokens", usage };
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
`;
