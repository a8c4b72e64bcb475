import { SseReader } from "../../client/sse.ts";
import { errorAnswer, type McpMessage, recordOf, versionIn } from "./message.ts";

export interface McpTarget {
  readonly url: string;
  readonly token: string;
}

export interface ForwardOptions {
  /** The protocol version agreed on by `initialize`; null if the client does not use `initialize`. */
  readonly version: string | null;
  readonly signal: AbortSignal;
  readonly write: (message: unknown) => void;
}

/** The daemon no longer accepts this token. */
export class TokenRefused extends Error {}

/** The connection was refused, so nothing was sent. */
export class NotConnected extends Error {}

/** Forwards one message to the daemon, and its answers and progress notifications to the client. */
export async function forward(
  target: McpTarget,
  message: McpMessage,
  sending: ForwardOptions,
): Promise<void> {
  const response = await post(target, message, sending);
  if (response.status === 401) {
    await response.body?.cancel();
    throw new TokenRefused("the daemon does not accept this session's token");
  }
  if (response.status === 202) return;
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const reader = new SseReader();
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      for (const { data } of reader.push(piece)) if (data !== "") sending.write(JSON.parse(data));
    }
    return;
  }
  // A body that is not JSON becomes an error below that names the HTTP status.
  const body = recordOf(await response.json().catch(() => null));
  if (body["jsonrpc"] === "2.0") sending.write(body);
  else if (message.id !== null) sending.write(refused(message, body, response.status));
}

async function post(target: McpTarget, message: McpMessage, sending: ForwardOptions): Promise<Response> {
  try {
    return await fetch(`${target.url}/mcp`, {
      method: "POST",
      headers: headersFor(target, message, sending.version),
      body: JSON.stringify(message.whole),
      signal: sending.signal,
      redirect: "error",
    });
  } catch (error) {
    const code = recordOf(error instanceof Error ? error.cause : null)["code"];
    if (code === "ECONNREFUSED") throw new NotConnected("nothing answers at the daemon's address");
    throw error;
  }
}

function headersFor(target: McpTarget, message: McpMessage, version: string | null): Record<string, string> {
  const own = versionIn(message);
  const { name } = message.params;
  return {
    authorization: `Bearer ${target.token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(own === null
      ? { ...(version !== null && { "mcp-protocol-version": version }) }
      : {
          "mcp-protocol-version": own,
          "mcp-method": message.method ?? "",
          ...(typeof name === "string" && { "mcp-name": headerText(name) }),
        }),
  };
}

/** Encodes the text as the protocol prescribes if a header cannot contain it unchanged. */
function headerText(text: string): string {
  if (/^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(text) && !text.startsWith("=?")) return text;
  return `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

/** Returns the daemon's refusal as an answer that the model sees. */
function refused(message: McpMessage, body: Record<string, unknown>, status: number): object {
  const { code, message: why } = recordOf(body["error"]);
  const text = typeof why === "string" ? `${String(code)}: ${why}` : `The daemon answered HTTP ${status}.`;
  return trouble(message, text);
}

/** Returns a failed tool call as a result, so the model sees it. Other failures become protocol errors. */
export function trouble(message: McpMessage, text: string): object {
  if (message.method !== "tools/call") return errorAnswer(message.id, -32_603, text);
  const result = { content: [{ type: "text", text }], isError: true };
  const complete = versionIn(message) === null ? {} : { resultType: "complete" };
  return { jsonrpc: "2.0", id: message.id, result: { ...result, ...complete } };
}
