import { setImmediate as turnOfEvents, setTimeout as pause } from "node:timers/promises";
import type { Agent, Usage } from "../../contract/index.ts";
import type {
  AgentAnswer,
  AgentExit,
  AgentHandle,
  AgentRequest,
  AgentUpdate,
  Driver,
  OpenRequest,
  OpenResult,
  PromptEnd,
  Replay,
} from "../port.ts";
import { play, type PlayEnd, promptContextIn, type Stage, Steered, type Used } from "../sim/script.ts";

export interface FakeOptions {
  readonly name?: string;
  /** Runs the script's `tool` steps. Without it every tool fails. */
  readonly tool?: (call: FakeToolCall) => Promise<{ readonly text: string; readonly ok: boolean }>;
  /** Lets a test pause the agent. Awaited before a session opens, and before a prompt begins and ends. */
  readonly gate?: (point: FakePoint) => Promise<void> | void;
}

export interface FakeToolCall {
  readonly sessionId: string;
  readonly mcp: OpenRequest["mcp"];
  readonly name: string;
  readonly input: unknown;
  readonly signal: AbortSignal;
}

export interface FakePoint {
  readonly at: "open" | "begin" | "end";
  readonly sessionId: string;
  readonly text: string | null;
}

/**
 * An agent inside this process that runs the sim agent's scripts, for unit tests and large benchmarks. Its
 * conversations live as long as the driver, so that they can be loaded.
 */
export function createFakeDriver(options: FakeOptions = {}): Driver {
  const conversations = new Map<string, Conversation>();
  const name = options.name ?? "fake";
  let lastId = 0;
  return {
    name,
    probe: async () => describeAgent(name),
    async open(request): Promise<OpenResult> {
      await options.gate?.({ at: "open", sessionId: request.sessionId, text: null });
      if (request.load !== null && !conversations.has(request.load)) {
        return { ok: false, reason: "no_session", message: `there is no fake session ${request.load}` };
      }
      const fork = request.load === null && request.fork ? request.fork : null;
      const source = fork === null ? undefined : conversations.get(fork);
      if (fork !== null && source === undefined) {
        return { ok: false, reason: "fork_failed", message: `there is no fake session ${request.fork}` };
      }
      lastId += 1;
      const id = request.load ?? `${name}-${lastId}`;
      const conversation = conversations.get(id) ?? structuredClone(source ?? EMPTY_CONVERSATION);
      conversations.set(id, conversation);
      return { ok: true, handle: new FakeHandle({ id, request, options, conversation }) };
    },
  };
}

interface Conversation {
  readonly userTexts: string[];
  readonly toolResults: string[];
  /** The number of tool calls after each of the `userTexts`. */
  readonly toolCalls: number[];
  lastText: string | null;
}

const EMPTY_CONVERSATION: Conversation = { userTexts: [], toolResults: [], toolCalls: [], lastText: null };

interface Opened {
  readonly id: string;
  readonly request: OpenRequest;
  readonly options: FakeOptions;
  readonly conversation: Conversation;
}

class FakeHandle implements AgentHandle {
  readonly agentSessionId: string;
  readonly agentVersion = "1.0.0";
  readonly model: string;
  readonly replay: Replay | null;
  readonly exited: Promise<AgentExit>;
  readonly #opened: Opened;
  readonly #exit = Promise.withResolvers<AgentExit>();
  #isOver = false;
  #isDeaf = false;
  #turn: { readonly abort: AbortController; readonly steered: Steered } | null = null;

  constructor(opened: Opened) {
    const { conversation, request } = opened;
    this.#opened = opened;
    this.agentSessionId = opened.id;
    this.model = request.model ?? "fake-1";
    this.exited = this.#exit.promise;
    this.replay = request.load === null ? null : structuredClone(conversation);
  }

  async prompt(text: string): Promise<PromptEnd> {
    if (this.#isOver) return exited(await this.exited);
    if (this.#turn !== null)
      return { ...EMPTY_END, stopReason: "error", error: "a prompt is already running", isAnswered: false };
    const turn = { abort: new AbortController(), steered: new Steered() };
    this.#turn = turn;
    const over = this.exited.then(exited);
    const played = this.#play(text, turn);
    const end = await Promise.race([over, played]);
    this.#turn = null;
    return end;
  }

  async steer(text: string): Promise<"injected" | "refused"> {
    if (this.#turn === null) return "refused";
    this.#opened.conversation.userTexts.push(text);
    this.#opened.conversation.toolCalls.push(0);
    this.#turn.steered.add(text);
    return "injected";
  }

  ignoreCancels(): void {
    this.#isDeaf = true;
  }

  cancel(): void {
    if (!this.#isDeaf) this.#turn?.abort.abort();
  }

  async stop(): Promise<{ left: [] }> {
    this.end({ code: null, signal: "SIGKILL", stderrTail: "" });
    return { left: [] };
  }

  async background(): Promise<boolean> {
    return false;
  }

  async descendants(): Promise<[]> {
    return [];
  }

  async #play(text: string, turn: { abort: AbortController; steered: Steered }): Promise<PromptEnd> {
    const { conversation, request, options } = this.#opened;
    conversation.userTexts.push(text);
    conversation.toolCalls.push(0);
    conversation.lastText = null;
    await options.gate?.({ at: "begin", sessionId: request.sessionId, text });
    const stage = new FakeStage(this.#opened, this);
    const end = await play({ text, stage, signal: turn.abort.signal, steered: turn.steered });
    await options.gate?.({ at: "end", sessionId: request.sessionId, text });
    return promptEnd(end);
  }

  emit(update: AgentUpdate): void {
    if (this.#isOver) return;
    const { conversation } = this.#opened;
    if (update.kind === "text") conversation.lastText = update.text;
    if (update.kind === "toolCall") conversation.toolCalls[conversation.toolCalls.length - 1]! += 1;
    this.#opened.request.onUpdate(update);
  }

  end(exit: AgentExit): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#exit.resolve(exit);
    this.#turn?.abort.abort();
  }
}

class FakeStage implements Stage {
  readonly #opened: Opened;
  readonly #handle: FakeHandle;
  #lastCall = 0;

  constructor(opened: Opened, handle: FakeHandle) {
    this.#opened = opened;
    this.#handle = handle;
  }

  say(text: string): void {
    this.#handle.emit({ kind: "fragment", what: "text", text });
    this.#handle.emit({ kind: "text", text });
  }

  think(text: string): void {
    this.#handle.emit({ kind: "fragment", what: "thought", text });
    this.#handle.emit({ kind: "thought", text });
  }

  plan(titles: readonly string[]): void {
    this.#handle.emit({ kind: "plan", steps: titles.map((title) => ({ title, status: "pending" })) });
  }

  recalls(text: string): boolean {
    const { userTexts, toolResults } = this.#opened.conversation;
    const before = [...userTexts.slice(0, -1), promptContextIn(userTexts.at(-1) ?? ""), ...toolResults];
    return before.some((each) => each.includes(text));
  }

  compact(summary: string): void {
    this.#handle.emit({ kind: "compaction", summary });
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await pause(ms, undefined, { signal });
  }

  background(): void {
    this.#handle.emit({ kind: "notice", text: "the fake agent starts nothing" });
  }

  /** Runs nothing and reports the command as successful. */
  async run(command: string): Promise<void> {
    const callId = this.#call("shell", { command }, { command });
    const result = { text: "", ok: true, ours: false, command, exitCode: 0 };
    this.#handle.emit({ kind: "toolResult", callId, tool: "shell", ...result });
  }

  /** Writes nothing and reports the change as made. */
  async write(path: string, text: string): Promise<void> {
    const callId = this.#call("write", { path, text }, { paths: [path] });
    const files = [{ path, status: "added" as const, added: 1, removed: 0 }];
    const result = { text: "", ok: true, ours: false, files };
    this.#handle.emit({ kind: "toolResult", callId, tool: "write", ...result });
  }

  async tool(name: string, input: unknown, signal: AbortSignal): Promise<{ text: string; ok: boolean }> {
    const { request, options, conversation } = this.#opened;
    const callId = this.#call(name, input, {});
    const { sessionId, mcp } = request;
    const reply = options.tool
      ? await options.tool({ sessionId, mcp, name, input, signal })
      : { text: `tool ${name} failed: no tools were given`, ok: false };
    conversation.toolResults.push(reply.text);
    this.#handle.emit({ kind: "toolResult", callId, tool: name, ...reply, ours: true });
    return reply;
  }

  async ask(text: string, options: readonly string[], signal: AbortSignal): Promise<string | null> {
    const questions = [{ id: "q1", text, options, multiple: false }];
    const answer = await this.#request({ kind: "question", questions }, signal);
    return answer.kind === "answer" ? String(answer.answers["q1"] ?? "") : null;
  }

  async review(plan: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#request({ kind: "plan", title: plan, text: plan }, signal)).kind === "allow";
  }

  async permit(text: string, signal: AbortSignal): Promise<boolean> {
    const asked = { tool: "shell", title: text, command: text, paths: [], ours: false };
    const request = { ...asked, risk: "command", options: ["Allow", "Reject"] } as const;
    return (await this.#request({ kind: "permission", ...request }, signal)).kind === "allow";
  }

  async usage(used: Used): Promise<void> {
    this.#handle.emit({ kind: "usage", usage: usageOf(used) });
    await turnOfEvents();
  }

  async misbehave(step: Parameters<Stage["misbehave"]>[0]): Promise<void> {
    if (step.word === "deaf") return this.#handle.ignoreCancels();
    const code = step.word === "half" ? 0 : 1;
    this.#handle.end({ code, signal: null, stderrTail: `fake: ${step.word} as told` });
    return new Promise(() => {});
  }

  /** A cancel withdraws the request. */
  #request(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    const cancelled = Promise.withResolvers<AgentAnswer>();
    signal.addEventListener("abort", () => cancelled.reject(signal.reason), { once: true });
    return Promise.race([this.#opened.request.onRequest(request), cancelled.promise]);
  }

  #call(tool: string, input: unknown, more: { command?: string; paths?: string[] }): string {
    this.#lastCall += 1;
    const callId = `call-${this.#lastCall}`;
    this.#handle.emit({ kind: "toolCall", callId, tool, title: tool, input, ...more });
    return callId;
  }
}

const EMPTY_END = { isAnswered: true, error: null, exit: null, usage: null };

function exited(exit: AgentExit): PromptEnd {
  return { ...EMPTY_END, stopReason: "exited", isAnswered: false, exit };
}

function promptEnd({ stopReason, error, usage, limitSeconds }: PlayEnd): PromptEnd {
  const limitedUntil = limitSeconds === null ? null : Date.now() + limitSeconds * 1000;
  return { ...EMPTY_END, stopReason, error, usage: usageOf(usage), limitedUntil };
}

function usageOf({ input, output, usd }: Used): Usage {
  return { inputTokens: input, cachedTokens: 0, outputTokens: output, usd };
}

function describeAgent(name: string): Agent {
  return {
    name,
    title: "Fake",
    installed: true,
    version: "1.0.0",
    signedIn: true,
    problem: null,
    howToInstall: null,
    steer: "inject",
    load: true,
    fork: true,
    cost: "usd",
    metersCalls: true,
    metersCost: true,
    questions: true,
    // The fake agent changes nothing on the machine, so it never does more than a mode allows.
    enforces: { "read-only": "os", ask: "os", workspace: "os", full: "os" },
    tools: [],
    servers: "named",
    models: ["fake-1"],
    defaultModel: "fake-1",
  };
}
