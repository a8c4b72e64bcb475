import type { McpServer, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Permission } from "../../contract/index.ts";
import type { AgentUpdate, OpenRequest } from "../port.ts";
import { SERVER_NAME } from "./update/own-tool.ts";
import type { OwnTool } from "./update/own-tool.ts";

/** What one vendor wants said differently. A plain ACP agent has nothing of it. */
export interface Dialect {
  /** How it is started for this session, or why it cannot be. Looked up at every start. */
  readonly launch?: (request: OpenRequest) => Launch;
  /** How our tools are offered; over the protocol where it does not say. */
  readonly servers?: (request: OpenRequest) => McpServer[];
  /** The vendor's extension of `session/new` and `session/load`. */
  readonly meta?: (request: OpenRequest) => Readonly<Record<string, unknown>>;
  /** The vendor's words for a mode, best first. One of them must be taken, or the session is not opened. */
  readonly modes?: Readonly<Record<Permission, readonly string[]>>;
  /**
   * What a mode means where the vendor asks all the same: `full` allows, and a vendor without a
   * mode that changes nothing has `read-only` deny whatever the caller says.
   */
  readonly answers?: Partial<Record<Permission, "allow" | "deny">>;
  /** What becomes of a second prompt while one runs, where there is no steering extension. */
  readonly secondPrompt?: "queue" | "restart";
  readonly load?: LoadHabit;
  /** Its first start prepares files that all later ones share, and must not run beside another start. */
  readonly startsFirstAlone?: boolean;
  /** It counts only the last model call of a prompt. */
  readonly countsLastCall?: boolean;
  /** What one model call has used so far, from a notification that only this vendor sends; null where it says nothing. */
  readonly callUsage?: (method: string, params: unknown) => CallUsage | null;
  /** That the agent asks its model again, from a notification that only this vendor sends. */
  readonly retrying?: (method: string, params: unknown) => Retrying | null;
  /** How the vendor names our own tools. */
  readonly ownTool?: OwnTool;
  /** What the agent says that is nothing of the conversation. */
  readonly isNoise?: (update: SessionUpdate) => boolean;
  /** The version of the vendor's program, where the agent that speaks to us is only an adapter. */
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

/** What has to be minded when a session is loaded. */
export interface LoadHabit {
  /** How long to wait before this session may be loaded. */
  readonly waitMs?: (agentSessionId: string, cwd: string) => number;
  readonly waitMaxMs?: number;
  /** It answers a load before it has told all of the conversation; this long without a word is its end. */
  readonly replayQuietMs?: number;
  /** A load that takes longer is given up, and tried again in a new process. */
  readonly limitMs?: number;
  readonly tries?: number;
}

/** The token travels inside the protocol: a command line can be read by every user of the machine. */
export function serversWith(request: OpenRequest, authorization: (token: string) => string): McpServer[] {
  if (request.mcp === null) return [];
  const headers = [{ name: "Authorization", value: authorization(request.mcp.token) }];
  return [{ type: "http", name: SERVER_NAME, url: request.mcp.url, headers }];
}

export function plainServers(request: OpenRequest): McpServer[] {
  return serversWith(request, (token) => `Bearer ${token}`);
}
