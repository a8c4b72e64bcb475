// An ACP agent with a ledger: it keeps a line for all work that it does, so that a test can count how often
// something was done. Arguments: its folder, and how it loads a session. `loads`: it replays its record.
// `cannot-load`: it declares that it cannot. `forgets`: it declares that it can, and has no such session.
// `unread`: it can, but its record lacks what it was asked.
//
// Each line of a prompt that begins with `do> ` is a step. `call X`: reports the tool call X. `pay X`: adds X
// to the ledger. `tool NAME JSON`: calls one of our tools without reporting it. `say X`: says X. `cut`: kills
// the daemon whose pid is in the file `daemon.pid`, once.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { McpClient, type McpServer } from "../../src/drivers/sim/mcp-client.ts";

const [folder = "", habit = "loads"] = process.argv.slice(2);
const NO_SESSION = -32_002;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: {
    readonly sessionId?: string;
    readonly mcpServers?: readonly (McpServer & { type?: string })[];
    readonly prompt?: readonly { readonly text?: string }[];
  };
}

let session = "";
let tools: McpClient | null = null;

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line) as Message;
  if (message.id !== undefined && message.method !== undefined) void answer(message.id, message);
});

async function answer(id: number, { method, params = {} }: Message): Promise<void> {
  switch (method) {
    case "initialize":
      return reply(id, {
        protocolVersion: 1,
        agentCapabilities: { loadSession: habit !== "cannot-load", mcpCapabilities: { http: true } },
        authMethods: [],
      });
    case "session/new":
      open(`ledger-${crypto.randomUUID()}`, params);
      return reply(id, { sessionId: session });
    case "session/load":
      open(String(params.sessionId), params);
      return load(id);
    case "session/prompt": {
      const text = (params.prompt ?? []).map((block) => block.text ?? "").join("\n");
      appendFileSync(recordOf(session), `${JSON.stringify(text)}\n`);
      await work(text);
      return reply(id, { stopReason: "end_turn" });
    }
    default:
      return fail(id, -32_601, `Method not found: ${method}`);
  }
}

function open(id: string, { mcpServers = [] }: NonNullable<Message["params"]>): void {
  session = id;
  const server = mcpServers.find((each) => each.type === "http");
  tools = server === undefined ? null : new McpClient(server);
}

async function load(id: number): Promise<void> {
  if (habit === "forgets" || !existsSync(recordOf(session))) {
    return fail(id, NO_SESSION, "there is no such session");
  }
  for (const line of habit === "unread" ? [] : readFileSync(recordOf(session), "utf8").split("\n")) {
    if (line === "") continue;
    const content = { type: "text", text: JSON.parse(line) as string };
    await update({ sessionUpdate: "user_message_chunk", content });
  }
  return reply(id, {});
}

function recordOf(id: string): string {
  return path.join(folder, `${id}.jsonl`);
}

async function work(text: string): Promise<void> {
  const steps = text.split("\n").filter((line) => line.startsWith("do> "));
  if (steps.length === 0) await say("There is nothing left to do.");
  for (const line of steps) {
    const [, verb = "", rest = ""] = /^do> (\w+) ?(.*)$/.exec(line) ?? [];
    await step(verb, rest);
  }
}

async function step(verb: string, rest: string): Promise<void> {
  switch (verb) {
    case "call": {
      const rawInput = { command: rest };
      const call = { sessionUpdate: "tool_call", toolCallId: rest, title: rest, kind: "execute" };
      return update({ ...call, status: "in_progress", rawInput });
    }
    case "pay":
      return appendFileSync(path.join(folder, "ledger"), `${rest}\n`);
    case "tool": {
      const [, name = "", json = "{}"] = /^(\w+) ?(.*)$/.exec(rest) ?? [];
      await tools?.call(name, JSON.parse(json), AbortSignal.timeout(60_000));
      return;
    }
    case "say":
      return say(rest);
    case "cut":
      return cut();
    default:
      throw new Error(`unknown step: ${verb}`);
  }
}

/** Kills the daemon, and then does nothing more: whoever supervises this process ends it. */
async function cut(): Promise<void> {
  const mark = path.join(folder, "cut");
  if (existsSync(mark)) return;
  writeFileSync(mark, "");
  process.kill(Number(readFileSync(path.join(folder, "daemon.pid"), "utf8")), "SIGKILL");
  setInterval(() => undefined, 60_000);
  await new Promise(() => undefined);
}

function say(text: string): Promise<void> {
  return update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
}

function update(made: object): Promise<void> {
  return write({ method: "session/update", params: { sessionId: session, update: made } });
}

function reply(id: number, result: object): Promise<void> {
  return write({ id, result });
}

function fail(id: number, code: number, message: string): Promise<void> {
  return write({ id, error: { code, message } });
}

function write(message: object): Promise<void> {
  return new Promise((resolve) =>
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`, () => resolve()),
  );
}
