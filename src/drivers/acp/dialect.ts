import type { McpServer, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Permission } from "../../contract/index.ts";
import type { AgentUpdate, OpenRequest } from "../port.ts";
import type { Fields } from "../../text/fields.ts";
import { type OwnTool, SERVER_NAME } from "./update/own-tool.ts";

/** One vendor's deviations from plain ACP. A plain ACP agent has none. */
export interface Dialect {
  /** The command for this session, or why the agent cannot be started. Called at every start. */
  readonly launch?: (request: OpenRequest) => Launch;
  /** The MCP servers to offer, including Kinfold's own. Default: `plainServers`. */
  readonly servers?: (request: OpenRequest) => McpServer[];
  /** The `_meta` of the requests that open, load or fork a session. */
  readonly meta?: (request: OpenRequest) => Fields | undefined;
  /** The vendor's names for each mode, best first. If the agent accepts none, no session is opened. */
  readonly modes?: Readonly<Record<Permission, readonly string[]>>;
  /** The fixed answer to every permission request in a mode. Some agents ask although the mode decides. */
  readonly answers?: Partial<Record<Permission, "allow" | "deny">>;
  /** What the agent does with a second prompt while one runs, if it has no steering extension. */
  readonly secondPrompt?: "queue" | "restart";
  readonly load?: LoadHabit;
  /** The first start prepares files that later starts share, so it must not overlap another start. */
  readonly startsFirstAlone?: boolean;
  /** The agent reports the tokens of a prompt's last model call only, not of the whole prompt. */
  readonly countsLastCall?: boolean;
  /** Reads a model call's usage so far from this vendor's notification; null if the notification has none. */
  readonly callUsage?: (method: string, params: unknown) => CallUsage | null;
  /** Reads from this vendor's notification that a model call is retried; null if none is retried. */
  readonly retrying?: (method: string, params: unknown) => Retrying | null;
  /** Recognises calls of Kinfold's tools. */
  readonly ownTool?: OwnTool;
  /** Whether to drop an update because it is not part of the conversation. */
  readonly isNoise?: (update: SessionUpdate) => boolean;
  /** The version of the vendor's program. Without this function, the adapter's version is reported. */
  readonly version?: () => string | null;
}

export type Retrying = Omit<AgentUpdate & { readonly kind: "retrying" }, "kind">;

/** Several notifications may describe one model call; they have the same id. */
export interface CallUsage {
  readonly id: string;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

export type Launch =
  | {
      readonly ok: true;
      readonly command: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
    }
  | { readonly ok: false; readonly problem: string };

export interface LoadHabit {
  /** How long to wait before this session may be loaded. */
  readonly waitMs?: (agentSessionId: string, cwd: string) => number;
  readonly waitMaxMs?: number;
  /** Set if the agent answers a load during its replay. The replay ends after this long without an update. */
  readonly replayQuietMs?: number;
  /** A load that takes longer is abandoned and retried in a new process. */
  readonly limitMs?: number;
  readonly tries?: number;
}

/** Sends the token over the protocol, not on a command line, which every user of the machine can read. */
export function serversWith(request: OpenRequest, authorization: (token: string) => string): McpServer[] {
  if (request.mcp === null) return [];
  const headers = [{ name: "Authorization", value: authorization(request.mcp.token) }];
  return [{ type: "http", name: SERVER_NAME, url: request.mcp.url, headers }];
}

export function plainServers(request: OpenRequest): McpServer[] {
  return serversWith(request, (token) => `Bearer ${token}`);
}
