import { createInterface } from "node:readline";

/**
 * An ACP agent that sends one very long message. Its first argument is `<count>x<size>`: the number and the
 * size of the pieces.
 */
const [count = 0, size = 0] = (process.argv[2] ?? "").split("x").map(Number);
const secret = process.argv[3] ?? "";
const sessionId = "long-1";

function send(message: object): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`, () => resolve());
  });
}

function say(text: string): Promise<void> {
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  return send({ method: "session/update", params: { sessionId, update } });
}

async function talk(id: unknown): Promise<void> {
  const words = "all work and no play ".repeat(Math.ceil(size / 21)).slice(0, size - 1);
  for (let at = 0; at < count; at += 1) {
    await say(`${words}\n`);
    // Sends the secret in two pieces, far past the length at which a stored entry is cut.
    if (at === count >> 1) {
      await say(`Look: ${secret.slice(0, secret.length >> 1)}`);
      await say(`${secret.slice(secret.length >> 1)} was it.\n`);
    }
  }
  await send({ id, result: { stopReason: "end_turn" } });
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line) as { id?: unknown; method?: string };
  const agentCapabilities = { mcpCapabilities: { http: true } };
  if (method === "initialize")
    void send({ id, result: { protocolVersion: 1, agentCapabilities, authMethods: [] } });
  else if (method === "session/new") void send({ id, result: { sessionId } });
  else if (method === "session/prompt") void talk(id);
  else if (id !== undefined) void send({ id, error: { code: -32601, message: "Method not found" } });
});
