import { readFile } from "node:fs/promises";
import { attachedTools, type ListedTool } from "../../contract/tools/tool.ts";
import { TOOL_WORDS } from "../../contract/tools/words.ts";
import type { Call } from "../call.ts";
import { homeOf, ownVersion } from "../daemon/home.ts";
import { initializeAnswer, negotiated } from "../mcp/initialize.ts";
import {
  forward,
  type McpTarget,
  NotConnected,
  type ForwardOptions,
  TokenRefused,
  trouble,
} from "../mcp/forward.ts";
import { clientNameIn, errorAnswer, type McpMessage, messageOf, recordOf } from "../mcp/message.ts";
import { LineReader } from "../../text/line-reader.ts";

/** Delay before connecting to the daemon. Connecting at once would slow down the client's first answers. */
const HELLO_MS = 200;
/** Grace period for running calls after the client has closed our input. */
const LEAVE_MS = 5_000;
/** How many times to look for a daemon that has gone away. Each pause is `RETRY_MS` longer than the last. */
const ATTEMPTS = 6;
const RETRY_MS = 200;
const SESSION_TOKEN = /^kfs_/;
const BLOCKING = new Set(["wait_session", "subagent", "ask_user_question", "plan_review"]);

/** Answers a client's first requests itself and forwards all others to the daemon. */
export async function run(call: Call): Promise<void> {
  const server = new StdioServer(call, ownVersion());
  const lines = new LineReader();
  for await (const piece of call.io.stdin as AsyncIterable<Buffer>) {
    for (const line of lines.push(piece)) server.take(line);
  }
  await server.leave();
}

interface Flight {
  readonly blocks: boolean;
  readonly controller: AbortController;
  isAnswered: boolean;
}

class StdioServer {
  readonly #call: Call;
  readonly #version: string;
  readonly #inFlight = new Map<string | number, Flight>();
  readonly #open = new Set<Promise<void>>();
  #initialize: McpMessage | null = null;
  #clientName = "unknown client";
  #target: Promise<McpTarget> | null = null;
  #token: string | null = null;

  constructor(call: Call, version: string) {
    this.#call = call;
    this.#version = version;
    const given = call.env["KINFOLD_TOKEN"]?.trim() ?? "";
    if (SESSION_TOKEN.test(given)) this.#token = given;
  }

  take(line: string): void {
    let read: unknown;
    try {
      read = JSON.parse(line);
    } catch {
      return this.#write(errorAnswer(null, -32_700, "Parse error: the line is not JSON."));
    }
    for (const whole of Array.isArray(read) ? read : [read]) {
      const task = this.#serve(messageOf(whole)).finally(() => this.#open.delete(task));
      this.#open.add(task);
    }
  }

  /** Called when the client has gone. Aborts blocking calls and waits at most `LEAVE_MS` for the others. */
  async leave(): Promise<void> {
    for (const { blocks, controller } of this.#inFlight.values()) if (blocks) controller.abort();
    const late = setTimeout(() => {
      for (const { controller } of this.#inFlight.values()) controller.abort();
    }, LEAVE_MS);
    await Promise.all(this.#open);
    clearTimeout(late);
  }

  async #serve(message: McpMessage): Promise<void> {
    if (message.method === "notifications/initialized") return;
    if (message.method === "notifications/cancelled") return this.#cancel(message.params["requestId"]);
    if (message.method === "initialize") this.#initialize = message;
    this.#clientName = clientNameIn(message) ?? this.#clientName;
    const info = this.#isKnown
      ? null
      : await initializeAnswer(message, { version: this.#version, tools: () => this.#tools() });
    if (info === null) return this.#forward(message);
    this.#write(info);
    // Connects only after the client has its answer, so that the client does not wait for the daemon.
    if (message.method === "tools/list") setImmediate(() => this.#warm());
    else setTimeout(() => this.#warm(), HELLO_MS).unref();
  }

  /** True if `KINFOLD_TOKEN` is a session's token. The daemon then knows the session and its tools. */
  get #isKnown(): boolean {
    return SESSION_TOKEN.test(this.#call.env["KINFOLD_TOKEN"]?.trim() ?? "");
  }

  /**
   * Lists no tools to an agent that we started: the daemon already offers them to it, and a call through this
   * server would attach the agent as a second session.
   */
  async #tools(): Promise<readonly ListedTool[]> {
    if (this.#call.env["KINFOLD_LEASE"]) return [];
    return attachedTools({ aliases: await listsAliases(this.#call) });
  }

  #warm(): void {
    this.#connected().catch((error: unknown) => {
      this.#call.io.note(`kinfold mcp: ${error instanceof Error ? error.message : String(error)}`);
    });
  }

  async #forward(message: McpMessage): Promise<void> {
    const controller = new AbortController();
    const { id } = message;
    const flight: Flight = {
      blocks: BLOCKING.has(String(message.params["name"])),
      controller,
      isAnswered: false,
    };
    if (id !== null) this.#inFlight.set(id, flight);
    const write = (answer: unknown): void => {
      if (id !== null && recordOf(answer)["id"] === id) flight.isAnswered = true;
      this.#write(answer);
    };
    try {
      await this.#send(message, { version: this.#agreed(), signal: controller.signal, write });
    } catch (error) {
      const isOver = controller.signal.aborted || flight.isAnswered;
      if (!isOver && id !== null) this.#write(trouble(message, sentenceOf(error)));
    } finally {
      if (id !== null) this.#inFlight.delete(id);
    }
  }

  /** If the daemon has gone away, looks for it again, and starts it if it does not come back. */
  async #send(message: McpMessage, sending: ForwardOptions): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const wasConnected = this.#target !== null || attempt > 1;
      try {
        return await forward(await this.#connected(), message, sending);
      } catch (error) {
        const mayRepeat = wasConnected && this.#mayRepeat(message, error);
        if (sending.signal.aborted || !mayRepeat || attempt === ATTEMPTS) throw error;
        if (error instanceof TokenRefused) this.#token = null;
        this.#target = null;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS * attempt));
      }
    }
  }

  /**
   * Allows a retry only if the message changes nothing or was certainly not executed. A broken connection
   * does not prove that: the daemon may have executed the message before the connection broke.
   */
  #mayRepeat(message: McpMessage, error: unknown): boolean {
    if (error instanceof TokenRefused) return !this.#isKnown;
    if (error instanceof NotConnected || recordOf(error)["code"] === "daemon_unreachable") return true;
    const words = TOOL_WORDS.find(({ name }) => name === message.params["name"]);
    return message.method !== "tools/call" || words?.reads === true;
  }

  #agreed(): string | null {
    return this.#initialize === null ? null : negotiated(this.#initialize.params["protocolVersion"]);
  }

  #cancel(requestId: unknown): void {
    if (typeof requestId !== "string" && typeof requestId !== "number") return;
    this.#inFlight.get(requestId)?.controller.abort();
  }

  #connected(): Promise<McpTarget> {
    this.#target ??= this.#connect().catch((error: unknown) => {
      this.#target = null;
      throw error;
    });
    return this.#target;
  }

  /**
   * Imports the daemon's client only now. Its code is large, and an earlier import would delay our first
   * answer to the MCP client.
   */
  async #connect(): Promise<McpTarget> {
    const { openConnection } = await import("../daemon/connection.ts");
    const { client, url } = await openConnection(this.#call, { start: true });
    if (this.#token === null) {
      const asked = { client: this.#clientName, cwd: process.cwd(), pid: process.ppid };
      this.#token = (await client.attach(asked)).token;
    }
    const target = { url, token: this.#token };
    await this.#introduce(target);
    return target;
  }

  /** Sends `initialize` to the daemon, which derives from the client's name how long a call may block. */
  async #introduce(target: McpTarget): Promise<void> {
    if (this.#initialize === null || this.#isKnown) return;
    const sending = { version: null, signal: AbortSignal.timeout(10_000), write: () => undefined };
    await forward(target, this.#initialize, sending);
  }

  #write(message: unknown): void {
    this.#call.io.stdout.write(`${JSON.stringify(message)}\n`);
  }
}

/**
 * Loads the configuration only if the file or the environment mentions aliases, because loading is slow and
 * the client is waiting.
 */
async function listsAliases(call: Call): Promise<boolean> {
  const paths = homeOf(call);
  // A read error is ignored: the daemon reports an unreadable configuration when it starts.
  const text = await readFile(paths.configFile, "utf8").catch(() => "");
  if (!text.includes("aliases") && !call.env["KINFOLD_MCP_ALIASES"]) return false;
  const { loadConfig } = await import("../../config/load.ts");
  return loadConfig({ home: paths.home, cwd: paths.home, env: call.env }).config.mcp.aliases;
}

/** Returns a sentence for the model. It says "did not answer" for every error that is not a refusal. */
function sentenceOf(error: unknown): string {
  const { name, code, next } = recordOf(error);
  const text = error instanceof Error ? error.message : String(error);
  if (name === "Refusal") return `${String(code)}: ${text}`;
  const more = Array.isArray(next) ? ` ${next.join(" ")}` : "";
  return `not_available: The daemon did not answer: ${text}${more} Nothing that it accepted is lost; list_sessions shows it.`;
}
