import type { McpServer, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Permission } from "../../contract/index.ts";
import type { AgentUpdate, OpenRequest } from "../port.ts";
import { SERVER_NAME } from "./update/own-tool.ts";
import type { OwnTool } from "./update/own-tool.ts";

/** One vendor's deviations from plain ACP. A plain ACP agent has none. */
export interface Dialect {
  /**
   * The command that starts the agent for this session, or why it cannot be started. Called at every start.
   */
  readonly launch?: (request: OpenRequest) => Launch;
  /** The MCP servers to offer, with our tools. Default: `plainServers`. */
  readonly servers?: (request: OpenRequest) => McpServer[];
  /** The vendor's extension of `session/new` and `session/load`. */
  readonly meta?: (request: OpenRequest) => Readonly<Record<string, unknown>>;
  /**
   * The vendor's names for each mode, best first. The agent must accept one of them, or the session is not
   * opened.
   */
  readonly modes?: Readonly<Record<Permission, readonly string[]>>;
  /**
   * Fixed answers to permission requests that the vendor sends in spite of its mode: `full` allows them. If
   * the vendor has no mode that prevents changes, `read-only` denies them whatever the caller says.
   */
  readonly answers?: Partial<Record<Permission, "allow" | "deny">>;
  /** What the agent does with a second prompt while one runs, if it has no steering extension. */
  readonly secondPrompt?: "queue" | "restart";
  readonly load?: LoadHabit;
  /**
   * The agent's first start prepares files that later starts share, so it must not run at the same time as
   * another start.
   */
  readonly startsFirstAlone?: boolean;
  /** The agent reports the tokens of a prompt's last model call only. */
  readonly countsLastCall?: boolean;
  /**
   * Reads what one model call has used so far from a notification that only this vendor sends; null if it has
   * none.
   */
  readonly callUsage?: (method: string, params: unknown) => CallUsage | null;
  /** Reads from a notification that only this vendor sends that the agent is retrying a model call. */
  readonly retrying?: (method: string, params: unknown) => Retrying | null;
  /** How the vendor names Kinfold's tools. */
  readonly ownTool?: OwnTool;
  /** Whether an update is not part of the conversation. */
  readonly isNoise?: (update: SessionUpdate) => boolean;
  /** The version of the vendor's program, if we talk to it through an adapter. */
  readonly version?: () => string | null;
}

export type Retrying = Omit<AgentUpdate & { readonly kind: "retrying" }, "kind">;

/** One model call. Several notifications may describe the same call. */
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
      readonly env: Readonly<Record<string, string>>;
    }
  | { readonly ok: false; readonly problem: string };

/** A vendor's peculiarities when it loads a session. */
export interface LoadHabit {
  /** How long to wait before this session may be loaded. */
  readonly waitMs?: (agentSessionId: string, cwd: string) => number;
  readonly waitMaxMs?: number;
  /**
   * Set if it answers a load before it has sent the whole conversation: the replay ends after this long
   * without an update.
   */
  readonly replayQuietMs?: number;
  /** A load that takes longer is abandoned and retried in a new process. */
  readonly limitMs?: number;
  readonly tries?: number;
}

/**
 * Offers our tools over the protocol. The token must not be on a command line, which every user of the
 * machine can read.
 */
export function serversWith(request: OpenRequest, authorization: (token: string) => string): McpServer[] {
  if (request.mcp === null) return [];
  const headers = [{ name: "Authorization", value: authorization(request.mcp.token) }];
  return [{ type: "http", name: SERVER_NAME, url: request.mcp.url, headers }];
}

export function plainServers(request: OpenRequest): McpServer[] {
  return serversWith(request, (token) => `Bearer ${token}`);
}
