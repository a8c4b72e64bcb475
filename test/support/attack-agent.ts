// An agent that floods its daemon. It speaks a minimum of ACP, and its prompt selects what it sends. `asks
// N`: N permission requests that stay open. `nests N`: a tool call nested N levels deep. `digs N`: N tool
// calls. `finds N`: N tool calls with long results. The others send one message. `says N`: N KB in pieces.
// `tells N`: N KB of prose. `hints N`: N KB of words that precede secrets. `leaks N`: a secret of N KB.
// `shouts N`: N KB in one line. `dribbles N`: N words one by one.
import { createInterface } from "node:readline";

const SESSION = "attack-1";
/** Text without secrets, but with many words that look like the beginning of one. */
const PROSE = `The token of line one, "password", key=value and ünïcode — 漢字. https://example.org/a?b=c
`.repeat(700);
/**
 * `HINTS` has words that precede secrets and must be checked one by one. `ENDLESS` is a secret that never
 * ends.
 */
const HINTS = "password: curl -u ".repeat(3_640);
const ENDLESS = "password=".repeat(7_281);
/** The maximum length of one line. */
const LINE_KB = 60 * 1024;

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
  const [, what = "", count = "0"] =
    /(asks|says|tells|hints|leaks|finds|shouts|dribbles|digs|nests) (\d+)/.exec(text) ?? [];
  const n = Number(count);
  if (what === "asks") {
    for (let at = 0; at < n; at += 1) await ask(at);
    // Never returns, so that the permission requests stay open.
    await new Promise(() => setInterval(() => undefined, 60_000));
  }
  if (what === "says") for (let at = 0; at < n; at += 64) await say("x".repeat(64 * 1024));
  if (what === "tells") for (let at = 0; at < n; at += 64) await say(PROSE);
  if (what === "hints") for (let at = 0; at < n; at += 64) await say(HINTS);
  if (what === "leaks") for (let at = 0; at < n; at += 64) await say(ENDLESS);
  if (what === "finds") for (let at = 0; at < n; at += 1) await find(at);
  if (what === "dribbles") for (let at = 0; at < n; at += 1) await say(`word ${at} `);
  if (what === "digs") for (let at = 0; at < n; at += 1) await dig(at);
  if (what === "shouts") {
    const [before = "", after = ""] = messageOf("%").split("%");
    await write(before);
    // Sends several lines, because a line of more than 64 MB is not accepted as a message.
    for (let at = 0; at < n; at += 64) {
      if (at > 0 && at % LINE_KB === 0) await write(`${after}\n${before}`);
      await write("y".repeat(64 * 1024));
    }
    await write(`${after}\n`);
  }
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
  return write(`${messageOf(text)}\n`);
}

function messageOf(text: string): string {
  return updateOf({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
}

function dig(at: number): Promise<void> {
  const update = {
    sessionUpdate: "tool_call",
    toolCallId: `t${at}`,
    title: `dig ${at}`,
    status: "in_progress",
  };
  return write(`${updateOf(update)}\n`);
}

function find(at: number): Promise<void> {
  const content = [{ type: "content", content: { type: "text", text: HINTS.repeat(4) } }];
  const update = {
    sessionUpdate: "tool_call",
    toolCallId: `t${at}`,
    title: "find",
    status: "completed",
    content,
  };
  return write(`${updateOf(update)}\n`);
}

function updateOf(update: object): string {
  return JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: SESSION, update } });
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
