import { asksToContinue, messagesIn, type Cut, cutOf } from "./cut.ts";
import { Journal, type Record } from "./journal.ts";
import { McpClient, type McpServer } from "./mcp-client.ts";
import { type Mode, readMode } from "./mode.ts";
import { play, promptContextIn, readPrompt, Steered } from "./script.ts";
import { AcpStage } from "./stage.ts";
import { type Params, Wire, WireError } from "./wire.ts";

/**
 * The sim agent: a real ACP agent in its own process that needs no model and no key. It runs scripts
 * (`script.ts`), keeps its sessions on disk and can be loaded, steered and cancelled.
 */
interface Session {
  readonly id: string;
  readonly cwd: string;
  readonly journal: Journal;
  readonly mcp: McpClient | null;
  readonly mode: Mode;
  model: string;
  /** Work that a crash or a usage limit interrupted. */
  cut: Cut | null;
  /** What the session's prompts have cost since this process started. */
  cost: number;
  turn: { readonly abort: AbortController; readonly steered: Steered } | null;
}

const MODEL = "sim-1";
/** Tests name further models in this variable, separated by commas. */
const MODELS = [MODEL, ...(process.env["KINFOLD_SIM_MODELS"] ?? "").split(",").filter((one) => one !== "")];
const INVALID = -32602;
const UNKNOWN_SESSION = -32002;
const LIMIT_REACHED = -32050;

let isDeaf = false;
const sessions = new Map<string, Session>();

const wire = new Wire({
  initialize: () => ({
    protocolVersion: 1,
    agentInfo: { name: "sim", title: "Sim", version: "1.0.0" },
    agentCapabilities: {
      loadSession: true,
      mcpCapabilities: { http: true, sse: false },
      sessionCapabilities: { fork: {} },
    },
    authMethods: [],
    _meta: { steering: { supported: true } },
  }),
  "session/new": (params) => {
    const id = `sim-${crypto.randomUUID()}`;
    const session = openSession(id, params, Journal.create(id));
    return { sessionId: id, configOptions: configOptions(session) };
  },
  "session/fork": (params) => {
    const from = String(params["sessionId"]);
    const loaded = Journal.load(from);
    if (loaded === null) throw new WireError(UNKNOWN_SESSION, `there is no sim session ${from}`);
    loaded.journal.close();
    const id = `sim-${crypto.randomUUID()}`;
    const session = openSession(id, params, Journal.copy(id, loaded.records));
    return { sessionId: id, configOptions: configOptions(session) };
  },
  "session/load": (params) => {
    const id = String(params["sessionId"]);
    const loaded = Journal.load(id);
    if (loaded === null) throw new WireError(UNKNOWN_SESSION, `there is no sim session ${id}`);
    for (const record of loaded.records) replay(id, record);
    const session = openSession(id, params, loaded.journal);
    session.cut = cutOf(loaded.records);
    return { configOptions: configOptions(session) };
  },
  "session/set_config_option": (params) => {
    const session = sessionOf(params);
    const model = String(params["value"]);
    if (params["configId"] !== "model" || !MODELS.includes(model)) {
      throw new WireError(INVALID, `sim has no ${String(params["configId"])} ${model}`);
    }
    session.model = model;
    return { configOptions: configOptions(session) };
  },
  "session/prompt": (params) => prompt(sessionOf(params), textOf(params)),
  "session/cancel": (params) => {
    if (!isDeaf) sessionOf(params).turn?.abort.abort();
  },
  "_session/steering": (params) => {
    const session = sessionOf(params);
    if (session.turn === null) return { outcome: "promptRequired", reason: "noRunningTurn" };
    const text = textOf(params);
    session.journal.appendDurably({ kind: "user", text, steered: true });
    session.turn.steered.add(text);
    return { outcome: "injected" };
  },
});

// The input ends when a client closes it or dies.
process.stdin.on("end", () => isDeaf || process.exit(0));
wire.listen(process.stdin);

function openSession(id: string, params: Params, journal: Journal): Session {
  const servers = (params["mcpServers"] ?? []) as (McpServer & { type?: string })[];
  const server = servers.find((one) => one.type === "http");
  const mcp = server ? new McpClient(server) : null;
  const session: Session = {
    id,
    cwd: String(params["cwd"] ?? "."),
    journal,
    mcp,
    mode: readMode(params["_meta"]),
    model: MODEL,
    cut: null,
    cost: 0,
    turn: null,
  };
  sessions.get(id)?.journal.close();
  sessions.set(id, session);
  return session;
}

/** Writes the user's message to disk before working on it, so that a later load shows that it arrived. */
async function prompt(session: Session, text: string): Promise<object> {
  if (session.turn !== null) throw new WireError(-32600, "a prompt is already running");
  const turn = { abort: new AbortController(), steered: new Steered() };
  session.turn = turn;
  try {
    const before = Journal.texts(session.id);
    session.journal.appendDurably({ kind: "user", text });
    const stage = new AcpStage({
      ...session,
      sessionId: session.id,
      costBefore: session.cost,
      memory: () => [...before(), promptContextIn(text)].join("\n"),
      wire,
      onDeaf,
    });
    const cut = asksToContinue(text) ? session.cut : null;
    for (const each of cut?.unanswered ?? []) turn.steered.add(each);
    const more = cut === null ? null : messagesIn(text);
    if (more !== null) turn.steered.add(more);
    const bound = cut?.bound ?? new Map<string, unknown>();
    let done = cut?.done ?? 0;
    const end = await play({
      text: cut?.text ?? text,
      done,
      bound,
      stage,
      signal: turn.abort.signal,
      steered: turn.steered,
      onSteered: () => session.journal.append({ kind: "answered" }),
      onStep: (steps, made) => {
        done = steps;
        session.journal.append({ kind: "step", done, ...made });
      },
    });
    session.cost += end.usage.usd;
    const isLimited = end.limitSeconds !== null;
    session.cut = isLimited ? { text: cut?.text ?? text, done, bound, said: null, unanswered: [] } : null;
    if (cut !== null && cut.done >= readPrompt(cut.text).length && cut.said !== null) stage.say(cut.said);
    if (end.stopReason === "error") throw turnError(end.error ?? "failed", end.limitSeconds);
    const { input, output, usd } = end.usage;
    return {
      stopReason: end.stopReason,
      usage: { inputTokens: input, outputTokens: output, totalTokens: input + output },
      _meta: { cost: { amount: usd, currency: "USD" } },
    };
  } finally {
    session.turn = null;
  }
}

function onDeaf(): void {
  isDeaf = true;
  process.on("SIGTERM", () => process.stderr.write("sim: heard nothing\n"));
  setInterval(() => {}, 60_000);
}

function turnError(message: string, limitSeconds: number | null): WireError {
  if (limitSeconds === null) return new WireError(-32603, message);
  return new WireError(LIMIT_REACHED, message, { resetsAt: Date.now() + limitSeconds * 1000 });
}

function replay(sessionId: string, record: Record): void {
  const send = (update: object): void => wire.notify("session/update", { sessionId, update });
  if (record.kind === "step" || record.kind === "answered") return;
  if (record.kind !== "tool") {
    const kinds = {
      user: "user_message_chunk",
      agent: "agent_message_chunk",
      thought: "agent_thought_chunk",
    };
    const messageId = crypto.randomUUID();
    send({ sessionUpdate: kinds[record.kind], messageId, content: { type: "text", text: record.text } });
    return;
  }
  send({
    sessionUpdate: "tool_call",
    toolCallId: record.callId,
    title: record.name,
    name: record.name,
    rawInput: record.input,
    status: record.ok ? "completed" : "failed",
    rawOutput: record.text,
    content: [{ type: "content", content: { type: "text", text: record.text } }],
  });
}

function configOptions(session: Session): object[] {
  const options = MODELS.map((value) => ({ value, name: value }));
  const currentValue = session.model;
  return [{ id: "model", name: "Model", category: "model", type: "select", currentValue, options }];
}

function sessionOf(params: Params): Session {
  const session = sessions.get(String(params["sessionId"]));
  if (session === undefined) throw new WireError(UNKNOWN_SESSION, "there is no such session");
  return session;
}

function textOf(params: Params): string {
  const blocks = (params["prompt"] ?? []) as { type: string; text?: string }[];
  return blocks.map((block) => block.text ?? "").join("\n");
}
