// An agent that floods its daemon. It speaks just enough ACP; what its prompt names, it does:
// `asks N` open permission requests at once, `says N` one message of N KB, `nests N` a call with N levels.
import { createInterface } from "node:readline";

const SESSION = "attack-1";

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line) as {
    id?: number;
    method?: string;
    params?: { prompt?: { text?: string }[] };
  };
  if (message.id === undefined || message.method === undefined) return;
  const text = (message.params?.prompt ?? []).map((block) => block.text ?? "").join("\n");
  void answer(message.id, message.method, text);
});

async function answer(id: number, method: string, text: string): Promise<void> {
  switch (method) {
    case "initialize":
      return reply(id, { protocolVersion: 1, agentCapabilities: {}, authMethods: [] });
    case "session/new":
      return reply(id, { sessionId: SESSION });
    case "session/prompt":
      await attack(text);
      return reply(id, { stopReason: "end_turn" });
    default:
      return send({ jsonrpc: "2.0", id, error: { code: -32_601, message: `Method not found: ${method}` } });
  }
}

async function attack(text: string): Promise<void> {
  const [, what = "", count = "0"] = /(asks|says|nests) (\d+)/.exec(text) ?? [];
  const n = Number(count);
  if (what === "asks") {
    for (let at = 0; at < n; at += 1) await ask(at);
    // The rest of its life it waits: what it asked stays open.
    await new Promise(() => setInterval(() => undefined, 60_000));
  }
  if (what === "says") for (let at = 0; at < n; at += 64) await say("x".repeat(64 * 1024));
  if (what === "nests") {
    const rawInput = `${'{"a":['.repeat(n)}1${"]}".repeat(n)}`;
    const update = `{"sessionUpdate":"tool_call","toolCallId":"1","title":"dig","status":"in_progress","rawInput":${rawInput}}`;
    await write(
      `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${SESSION}","update":${update}}}\n`,
    );
  }
}

function ask(at: number): Promise<void> {
  const toolCall = {
    toolCallId: `q${at}`,
    title: `rm ${at}`,
    kind: "execute",
    rawInput: { command: `rm ${at}` },
  };
  const options = [
    { optionId: "y", name: "y", kind: "allow_once" },
    { optionId: "n", name: "n", kind: "reject_once" },
  ];
  const params = { sessionId: SESSION, toolCall, options };
  return send({ jsonrpc: "2.0", id: `p${at}`, method: "session/request_permission", params });
}

function say(text: string): Promise<void> {
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  return send({ jsonrpc: "2.0", method: "session/update", params: { sessionId: SESSION, update } });
}

function reply(id: number, result: unknown): Promise<void> {
  return send({ jsonrpc: "2.0", id, result });
}

function send(message: object): Promise<void> {
  return write(`${JSON.stringify(message)}\n`);
}

function write(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()));
}
