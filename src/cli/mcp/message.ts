export interface McpMessage {
  readonly id: string | number | null;
  /** Null if the message answers a request of the daemon. */
  readonly method: string | null;
  readonly params: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly whole: unknown;
}

export type McpId = string | number | null;

const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";
const CLIENT_INFO = "io.modelcontextprotocol/clientInfo";

export function messageOf(whole: unknown): McpMessage {
  const { id, method, params } = recordOf(whole);
  const inner = recordOf(params);
  return {
    id: typeof id === "string" || typeof id === "number" ? id : null,
    method: typeof method === "string" ? method : null,
    params: inner,
    meta: recordOf(inner["_meta"]),
    whole,
  };
}

/** Returns the message's protocol version. Clients without `initialize` send the version in every message. */
export function versionIn(message: McpMessage): string | null {
  const version = message.meta[PROTOCOL_VERSION];
  return typeof version === "string" ? version : null;
}

/** Returns the client's name. Which field has the name depends on the protocol version. */
export function clientNameIn(message: McpMessage): string | null {
  const info = message.method === "initialize" ? message.params["clientInfo"] : message.meta[CLIENT_INFO];
  const { name } = recordOf(info);
  return typeof name === "string" && name.trim() !== "" ? name.trim().slice(0, 100) : null;
}

export function answer(id: McpId, result: object): object {
  return { jsonrpc: "2.0", id, result };
}

export function errorAnswer(id: McpId, code: number, message: string): object {
  return { jsonrpc: "2.0", id, error: { code, message } };
}

export function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
