// Misbehaving agents: each speaks a minimum of ACP and breaks the protocol at a different moment.
import { spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { createInterface } from "node:readline";

const [mode = ""] = process.argv.slice(2);
const PIECE = "x".repeat(1024 * 1024);

switch (mode) {
  case "exits":
    process.stderr.write("rogue: no licence found\n");
    process.exit(3);
    break;
  case "endless-line":
    for (;;) await write(PIECE);
  case "half-start":
    await write('{"jsonrpc":"2.0","id":0,"resu');
    process.stdin.resume();
    break;
  case "silent":
    process.stdin.resume();
    break;
  default:
    serve();
}

function serve(): void {
  if (mode === "deaf") process.on("SIGTERM", () => undefined);
  createInterface({ input: process.stdin }).on("line", (line) => {
    const message = JSON.parse(line) as { id?: number; method?: string };
    if (message.id !== undefined && message.method !== undefined) void answer(message.id, message.method);
  });
}

async function answer(id: number, method: string): Promise<void> {
  if (method === "initialize") {
    if (mode === "noise") for (let megabytes = 0; megabytes < 20; megabytes += 1) await write(`${PIECE}\n`);
    if (mode === "empty-answer") return reply(id, null);
    return reply(id, { protocolVersion: 1, agentCapabilities: {}, authMethods: [] });
  }
  if (method === "session/new") {
    if (mode === "signed-out") return fail(id, -32_000, "Authentication required");
    return reply(id, mode === "nonsense" ? { hello: "world" } : { sessionId: "rogue-1" });
  }
  if (method === "session/prompt") return prompted(id);
  return fail(id, -32_601, `Method not found: ${method}`);
}

async function prompted(id: number): Promise<void> {
  await say("I have begun");
  switch (mode) {
    case "half-line":
      await write('{"jsonrpc":"2.0","method":"session/upd');
      process.exit(0);
      break;
    case "killed":
      process.kill(process.pid, "SIGKILL");
      break;
    case "closes-output":
      closeSync(1);
      setInterval(() => undefined, 60_000);
      break;
    case "leaves-others":
      spawn("sleep", ["600"], { detached: true, stdio: "ignore" }).unref();
      process.exit(1);
      break;
    case "deaf":
    case "sits":
      await update({ sessionUpdate: "tool_call", toolCallId: "1", title: "dig", status: "in_progress" });
      setInterval(() => undefined, 60_000);
      break;
    case "refuses":
      await reply(id, { stopReason: "refusal" });
      break;
    case "invents":
      await reply(id, { stopReason: "bored" });
      break;
    default:
      await reply(id, { stopReason: "end_turn" });
  }
}

function say(text: string): Promise<void> {
  return update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
}

function update(made: object): Promise<void> {
  const params = { sessionId: "rogue-1", update: made };
  return write(`${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params })}\n`);
}

function reply(id: number, result: unknown): Promise<void> {
  return write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}

function fail(id: number, code: number, message: string): Promise<void> {
  return write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })}\n`);
}

function write(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()));
}
