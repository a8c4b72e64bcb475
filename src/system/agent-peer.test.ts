import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import {
  fakeOperations,
  PERSON,
  type Running,
  sessionCaller,
  start,
} from "../server/testing/fake-operations.ts";
import { agentPeerCheck } from "./agent-peer.ts";

const ASK = `
  const [url, token] = process.argv.slice(1);
  const response = await fetch(url + "/api/health", { headers: { authorization: "Bearer " + token } });
  const { error } = await response.json();
  console.log(response.status, error?.code ?? "");
`;
const IDLE = "setInterval(() => {}, 1000); console.log('ready')";

let running: Running;
let agent: ChildProcess;
let hasAgents = true;

before(async () => {
  const fake = fakeOperations({ health: async () => ({ ok: true }) as never });
  fake.tokens.set("session-token", sessionCaller());
  running = await start(fake, { isAgentPeer: agentPeerCheck({ hasAgents: () => hasAgents }) });
  agent = spawn(process.execPath, ["-e", IDLE], {
    env: { KINFOLD_LEASE: "l1" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(agent.stdout!, "data");
});
after(async () => {
  agent.kill("SIGKILL");
  await running.server.close();
});

/** Runs a program that sends one request, and returns the answer that it got. */
async function ask(command: readonly string[], env: Record<string, string>, token = PERSON): Promise<string> {
  const [program = "", ...args] = command;
  const child = spawn(program, [...args, running.url, token], { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await once(child, "close");
  return text.trim();
}

const node = [process.execPath, "--input-type=module", "-e", ASK];

describe("a person's token", { skip: whyNot() }, () => {
  test("is refused when a process of an agent presents it", async () => {
    assert.equal(await ask(node, { KINFOLD_LEASE: "l1" }), "403 caller_is_agent");
  });

  test("is refused when a descendant of an agent presents it, whatever its own environment is", async () => {
    const clean = ["/bin/sh", "-c", 'env -i "$@"; true', "sh", ...node];
    assert.equal(
      await ask(clean, { KINFOLD_LEASE: "l1", PATH: process.env.PATH ?? "" }),
      "403 caller_is_agent",
    );
  });

  test("is answered when any other process presents it, also while agents run", async () => {
    assert.equal(await ask(node, {}), "200");
    assert.equal(await ask(node, { OTHER_KINFOLD_LEASE: "x" }), "200");
  });

  test("is answered without a lookup while no agent runs", async () => {
    hasAgents = false;
    assert.equal(await ask(node, { KINFOLD_LEASE: "l1" }), "200");
    hasAgents = true;
  });

  test("a session's own token is answered from an agent's process", async () => {
    assert.equal(await ask(node, { KINFOLD_LEASE: "l1" }, "session-token"), "200");
  });

  test("a hundred connections at once share a few scans of the processes", async () => {
    let looks = 0;
    const remembered = async (): Promise<ReadonlySet<number>> => {
      looks += 1;
      return new Set();
    };
    const isAgentPeer = agentPeerCheck({ remembered });
    const peer = { remotePort: 1, remoteAddress: "127.0.0.1", localPort: running.port };
    await Promise.all(Array.from({ length: 100 }, () => isAgentPeer(peer)));
    assert.ok(looks <= 3, `${looks} looks`);
  });

  test("a scan that began before a connection was made is not used for it", async () => {
    const begun = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    let looks = 0;
    const isAgentPeer = agentPeerCheck({
      remembered: async () => {
        looks += 1;
        begun.resolve();
        if (looks === 1) await held.promise;
        return new Set();
      },
    });
    const peer = { remotePort: 1, remoteAddress: "127.0.0.1", localPort: running.port };
    const first = isAgentPeer(peer);
    await begun.promise;
    const second = isAgentPeer(peer);
    held.resolve();
    await Promise.all([first, second]);
    assert.equal(looks, 2);
  });

  test("a socket that is closed already counts as an agent's while agents run", async () => {
    const isAgentPeer = agentPeerCheck();
    const peer = { remotePort: 1, remoteAddress: "127.0.0.1", localPort: running.port };
    assert.equal(await isAgentPeer(peer), true);
    assert.equal(await isAgentPeer({ ...peer, remoteAddress: "192.0.2.1" }), false);
  });
});

function whyNot(): string | false {
  if (process.platform !== "linux") return "processes are looked up on Linux only";
  return process.env.KINFOLD_LEASE === undefined ? false : "this test itself was started by an agent";
}
