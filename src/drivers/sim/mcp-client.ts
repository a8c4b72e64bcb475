import { EventSourceParserStream } from "eventsource-parser/stream";

export interface McpServer {
  readonly name: string;
  readonly url: string;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
}

export interface ToolReply {
  readonly text: string;
  readonly ok: boolean;
}

/** Implements only what a tool call needs of streamable HTTP. Loads no other Kinfold code, to start fast. */
export class McpClient {
  readonly #server: McpServer;
  #opening: Promise<void> | null = null;
  #sessionId: string | null = null;
  #protocol = PROTOCOL;
  #lastId = 0;

  constructor(server: McpServer) {
    this.#server = server;
  }

  /**
   * Rejects only after a cancel, never for an error of the server. Retries when the connection breaks, as
   * every agent does, because the daemon may be restarting. A repeated spawn creates no second child, because
   * the name identifies the child.
   */
  async call(name: string, input: unknown, signal: AbortSignal): Promise<ToolReply> {
    for (let left = TRIES; ; left -= 1) {
      const reply = await this.#try(name, input, signal);
      if (reply !== null) return reply;
      if (left === 0) return { text: `tool ${name} failed: the server did not answer`, ok: false };
      await new Promise((resolve) => setTimeout(resolve, TRY_MS));
    }
  }

  /** Null if the connection broke. */
  async #try(name: string, input: unknown, signal: AbortSignal): Promise<ToolReply | null> {
    try {
      this.#opening ??= this.#open(signal);
      await this.#opening;
      const params = { name, arguments: input, _meta: { progressToken: `sim-${this.#lastId}` } };
      return readReply(await this.#request("tools/call", params, signal));
    } catch (error) {
      if (signal.aborted) throw error;
      this.#opening = null;
      // `fetch` throws a TypeError if no answer arrived.
      if (error instanceof TypeError) return null;
      return { text: `tool ${name} failed: ${describe(error)}`, ok: false };
    }
  }

  async #open(signal: AbortSignal): Promise<void> {
    this.#sessionId = null;
    const clientInfo = { name: "kinfold-sim", version: "1" };
    const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo };
    const answer = (await this.#request("initialize", params, signal)) as { protocolVersion?: string };
    this.#protocol = answer.protocolVersion ?? PROTOCOL;
    const response = await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" }, signal);
    await response.arrayBuffer();
  }

  async #request(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const response = await this.#post({ jsonrpc: "2.0", id, method, params }, signal);
    this.#sessionId = response.headers.get("mcp-session-id") ?? this.#sessionId;
    const message = await readMessage(response, id);
    if (message.error) throw new Error(message.error.message);
    return message.result;
  }

  async #post(message: object, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": this.#protocol,
    };
    for (const header of this.#server.headers) headers[header.name] = header.value;
    if (this.#sessionId !== null) headers["mcp-session-id"] = this.#sessionId;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
    const body = JSON.stringify(message);
    const response = await fetch(this.#server.url, { method: "POST", headers, body, signal: limit });
    if (!response.ok) throw new Error(`${response.status} ${(await response.text()).slice(0, 500)}`.trim());
    return response;
  }
}

interface Message {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

const PROTOCOL = "2025-06-18";
const TRIES = 5;
const TRY_MS = 1_000;
const CALL_MS = 3_600_000;
const STREAM_LIMIT = { maxBufferSize: 64 * 1024 * 1024 };

/** The answer comes as JSON or as server-sent events. */
async function readMessage(response: Response, id: number): Promise<Message> {
  if (!response.headers.get("content-type")?.includes("text/event-stream")) {
    return (await response.json()) as Message;
  }
  const stream = response.body?.pipeThrough(new TextDecoderStream());
  for await (const { data } of stream?.pipeThrough(new EventSourceParserStream(STREAM_LIMIT)) ?? []) {
    const message = parseMessage(data);
    if (message !== null && message.id === id) return message;
  }
  throw new Error("the stream ended before the answer");
}

function parseMessage(text: string): Message | null {
  return text.trim() === "" ? null : (JSON.parse(text) as Message);
}

function readReply(result: unknown): ToolReply {
  const { content, structuredContent, isError } = (result ?? {}) as {
    content?: { type: string; text?: string }[];
    structuredContent?: unknown;
    isError?: boolean;
  };
  const texts = (content ?? []).flatMap((part) => (part.type === "text" ? [part.text ?? ""] : []));
  const text = texts.length > 0 ? texts.join("\n") : JSON.stringify(structuredContent ?? {});
  return { text, ok: isError !== true };
}

function describe(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error instanceof Error ? error.message : String(error)}${cause}`;
}
