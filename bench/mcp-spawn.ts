import { Agent, request } from "node:http";
import { type Client, connect } from "../src/client/index.ts";
import { DaemonProcess, FAKE_DAEMON } from "./daemon-process.ts";
import { inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { median, percentile, ratio, timeMs } from "./sample.ts";

const ROUNDS = 40;
const WARM = 10;
/** Children per parent: the default limit. Half of them are spawned over MCP, half over HTTP. */
const CHILDREN = 8;
const PROMPT = "Look at the tests and report what is missing.";
/**
 * A spawn with `inherit: brief` would wait until the agent's tool call is in the transcript. Here the
 * measurement makes the call, so no agent's tool call would ever appear.
 */
const INHERIT = "none";

/**
 * Measures the same spawn over MCP and over HTTP, alternately, from the request until the whole reply has
 * arrived. Each interface keeps one connection open. Only the parent's turn may run. Its children wait, so
 * that their work does not disturb the measurement.
 */
export const mcpSpawn: Measurement = {
  name: "mcp-spawn",
  run: () =>
    inHome(async (paths) => {
      const daemon = await DaemonProcess.start(paths, { entry: FAKE_DAEMON, turnsMax: 1 });
      const ways = { mcp: new Wire(daemon.url), http: new Wire(daemon.url) };
      try {
        await daemon.atWork();
        const client = connect({ url: daemon.url, token: daemon.token });
        const taken: Record<"a" | "b", number[]> = { a: [], b: [] };
        const all: Record<"a" | "b", number[]> = { a: [], b: [] };
        for (let round = -WARM; round < ROUNDS; round++) {
          const { a, b } = await family(client, daemon, ways);
          if (round < 0) continue;
          taken.a.push(median(a));
          taken.b.push(median(b));
          all.a.push(...a);
          all.b.push(...b);
        }
        const figures = (["a", "b"] as const).map((way) => percentile(all[way], 50).toFixed(2));
        const note = `p50 ${figures[0]} ms against ${figures[1]} ms of POST /api/sessions/:id/spawn, ${all.a.length} of each in turn`;
        const what = "spawn_session over MCP";
        return [{ what, value: ratio(taken), unit: "times", goal: atMost(2), note }];
      } finally {
        for (const wire of Object.values(ways)) wire.close();
        await daemon.stop();
      }
    }),
};

async function family(
  client: Client,
  daemon: DaemonProcess,
  { mcp, http }: { mcp: Wire; http: Wire },
): Promise<{ a: number[]; b: number[] }> {
  const { session } = await client.create({ prompt: "sim> hang", agent: "fake" });
  const token = await daemon.sessionToken(session.id);
  await mcp.post("/mcp", token, INITIALIZE);
  const taken: { a: number[]; b: number[] } = { a: [], b: [] };
  for (let child = 0; child < CHILDREN; child += 2) {
    const overMcp = (): Promise<void> => spawnOverMcp(mcp, token, child);
    const overHttp = (): Promise<void> => spawnOverHttp(http, token, { id: session.id, child: child + 1 });
    // The order alternates, because the second spawn has one more sibling and may take longer.
    const isMcpFirst = child % 4 === 0;
    if (isMcpFirst) taken.a.push(await timeMs(overMcp));
    taken.b.push(await timeMs(overHttp));
    if (!isMcpFirst) taken.a.push(await timeMs(overMcp));
  }
  await client.cancel({ id: session.id });
  return taken;
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "bench", version: "1.0.0" },
  },
};

async function spawnOverMcp(wire: Wire, token: string, child: number): Promise<void> {
  const params = {
    name: "spawn_session",
    arguments: { name: `child-${child}`, prompt: PROMPT, inherit: INHERIT },
  };
  const text = await wire.post("/mcp", token, {
    jsonrpc: "2.0",
    id: child + 1,
    method: "tools/call",
    params,
  });
  if (!text.includes("session_id") && !text.includes("Started"))
    throw new Error(`no child was spawned: ${text}`);
}

async function spawnOverHttp(wire: Wire, token: string, at: { id: string; child: number }): Promise<void> {
  const body = { name: `child-${at.child}`, prompt: PROMPT, inherit: INHERIT };
  const text = await wire.post(`/api/sessions/${at.id}/spawn`, token, body);
  if (!text.includes('"session"')) throw new Error(`no child was spawned: ${text}`);
}

/** One keep-alive connection, without a client library around it. */
class Wire {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(url: string) {
    this.#url = url;
  }

  post(path: string, token: string, body: object): Promise<string> {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-06-18",
    };
    return new Promise((resolve, reject) => {
      const sent = request(this.#url + path, { method: "POST", agent: this.#agent, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (chunk: string) => (text += chunk));
        answer.on("end", () => resolve(text));
      });
      sent.on("error", reject);
      sent.end(JSON.stringify(body));
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
