import { CLIENT_INFO_META_KEY, Server, createMcpHandler } from "@modelcontextprotocol/server";
import type {
  CallToolResult,
  GetPromptResult,
  ListPromptsResult,
  ListToolsResult,
  Tool,
} from "@modelcontextprotocol/server";
import type { Context } from "hono";
import { instructionsFor, toolsFor } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { readJson } from "../body.ts";
import type { HttpRequest } from "../request.ts";
import { busyReply } from "./busy.ts";
import { callTool } from "./call.ts";
import type { ToolCall } from "./call.ts";
import { getPrompt, listPrompts } from "./prompts.ts";
import { isFields, mayBlock } from "./arguments.ts";
import type { Env, ServerOptions } from "../routes.ts";

/**
 * Serves `/mcp` to sessions. Each request gets a new handler and server, so that no answer can reach another
 * client. Only client names and calls in progress outlive a request; both are stored by token.
 */
export function serveMcp(options: ServerOptions): (c: Context<Env>) => Promise<Response> {
  const shared: Shared = {
    ...options,
    names: new ClientNames(),
    flight: new CallsInFlight(),
  };
  return (c) => serve(c, shared);
}

interface Served extends Shared {
  readonly request: HttpRequest;
}

interface Shared extends ServerOptions {
  readonly names: ClientNames;
  readonly flight: CallsInFlight;
}

async function serve(c: Context<Env>, shared: Shared): Promise<Response> {
  const request = c.var.request;
  refuseOthers(request);
  const served: Served = { ...shared, request };
  if (c.req.method !== "POST") return handlerFor(served, "auto").fetch(c.req.raw);
  const body = await bodyOf(c);
  if (body === undefined) return parseError();
  const messages = (Array.isArray(body) ? body : [body]).map(readMessage);
  for (const message of messages) learn(message, request.token, shared);
  const isListening = messages.some(({ method }) => method === "subscriptions/listen");
  const isBlocking = messages.some(({ tool }) => tool !== null && mayBlock(tool));
  try {
    request.isLong = isListening || isBlocking;
  } catch (error) {
    const reply = error instanceof Refusal ? busyReply(body, error) : null;
    if (reply === null) throw error;
    return reply;
  }
  // A blocking call answers over a stream, so that progress can be sent before the answer.
  const handler = handlerFor(served, isBlocking ? "sse" : "auto");
  if (isListening) request.signal.addEventListener("abort", () => void handler.close(), { once: true });
  return handler.fetch(c.req.raw, { parsedBody: body });
}

function refuseOthers(request: HttpRequest): void {
  if (request.caller.kind === "session") return;
  throw new Refusal(
    "forbidden",
    "This address serves the tools of sessions that Kinfold runs, each with its own token. A person asks over /api or with the kinfold command.",
  );
}

function handlerFor(served: Served, responseMode: "auto" | "sse"): ReturnType<typeof createMcpHandler> {
  return createMcpHandler(() => serverFor(served), {
    responseMode,
    onerror: (error) => served.log.debug({ err: error }, "MCP request failed"),
  });
}

function serverFor(served: Served): Server {
  const { request } = served;
  const { role } = request.caller;
  const server = new Server(
    { name: "kinfold", title: "Kinfold", version: served.version },
    { capabilities: { tools: {}, prompts: {} }, instructions: instructionsFor(role) },
  );
  server.setRequestHandler("tools/list", (): ListToolsResult => toolList(served));
  server.setRequestHandler("prompts/list", (): ListPromptsResult => ({ prompts: listPrompts() }));
  server.setRequestHandler("prompts/get", ({ params }): GetPromptResult => getPrompt(params));
  server.setRequestHandler("tools/call", async ({ params }, ctx): Promise<CallToolResult> => {
    const { id, signal, _meta: meta = {} } = ctx.mcpReq;
    const flight = served.flight.enter(request.token, id);
    const call: ToolCall = {
      ...served,
      clientName: served.names.get(request.token),
      isWakeable: role !== "attached",
      tool: params.name,
      args: params.arguments ?? {},
      meta,
      signal: AbortSignal.any([request.signal, signal, flight.signal]),
      progress: (progress) => ctx.mcpReq.notify({ method: "notifications/progress", params: progress }),
    };
    try {
      return await callTool(call);
    } finally {
      flight.leave();
    }
  });
  return server;
}

function toolList({ request, config }: Served): ListToolsResult {
  const { role, withheld } = request.caller;
  const all = toolsFor(role, config.mcp ?? { aliases: false });
  const tools: readonly unknown[] = all.filter(({ name }) => !withheld.includes(name));
  return { tools: tools as Tool[] };
}

/** Returns undefined if the body is not JSON; the answer is then a JSON-RPC error. Throws other refusals. */
async function bodyOf(c: Context<Env>): Promise<unknown> {
  try {
    return await readJson(c.env.incoming);
  } catch (error) {
    if (error instanceof Refusal && error.code === "malformed_json") return undefined;
    throw error;
  }
}

function parseError(): Response {
  const error = { code: -32_700, message: "Parse error: the body is not JSON." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
}

interface Message {
  readonly method: string | null;
  readonly tool: string | null;
  readonly clientName: string | null;
  readonly cancels: string | number | null;
}

/** Reads the few fields that this endpoint needs before the protocol's own code runs. */
function readMessage(message: unknown): Message {
  const { method, params } = fieldsOf(message);
  const { name, clientInfo, _meta, requestId } = fieldsOf(params);
  const info = method === "initialize" ? clientInfo : fieldsOf(_meta)[CLIENT_INFO_META_KEY];
  const clientName = fieldsOf(info).name;
  const isCancel =
    method === "notifications/cancelled" && (typeof requestId === "string" || typeof requestId === "number");
  return {
    method: typeof method === "string" ? method : null,
    tool: method === "tools/call" && typeof name === "string" ? name : null,
    clientName: typeof clientName === "string" ? clientName : null,
    cancels: isCancel ? requestId : null,
  };
}

function learn(message: Message, token: string, shared: Shared): void {
  if (message.clientName !== null) shared.names.set(token, message.clientName);
  if (message.cancels !== null) shared.flight.cancel(token, message.cancels);
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return isFields(value) ? value : {};
}

const NAMES_MAX = 4_096;

/** Remembers client names by token, because older protocols send the name only in `initialize`. */
class ClientNames {
  readonly #names = new Map<string, string>();

  set(token: string, name: string): void {
    this.#names.delete(token);
    this.#names.set(token, name.slice(0, 100));
    const oldest = this.#names.size > NAMES_MAX ? this.#names.keys().next().value : undefined;
    if (oldest !== undefined) this.#names.delete(oldest);
  }

  get(token: string): string | null {
    return this.#names.get(token) ?? null;
  }
}

type RequestId = string | number;

interface Flight {
  readonly requestId: RequestId;
  readonly controller: AbortController;
}

/** The tool calls in progress, by token. A cancel is a separate request and finds its call here. */
class CallsInFlight {
  readonly #byToken = new Map<string, Set<Flight>>();

  enter(token: string, requestId: RequestId): { signal: AbortSignal; leave: () => void } {
    const flight: Flight = { requestId, controller: new AbortController() };
    const flights = this.#byToken.get(token) ?? new Set<Flight>();
    this.#byToken.set(token, flights.add(flight));
    const leave = (): void => {
      flights.delete(flight);
      if (flights.size === 0 && this.#byToken.get(token) === flights) this.#byToken.delete(token);
    };
    return { signal: flight.controller.signal, leave };
  }

  /** Cancels a call. Does nothing if two clients with the same token use the same request id. */
  cancel(token: string, requestId: RequestId): void {
    const meant = [...(this.#byToken.get(token) ?? [])].filter((flight) => flight.requestId === requestId);
    if (meant.length === 1) meant[0]?.controller.abort(new Error("the client cancelled the call"));
  }
}
