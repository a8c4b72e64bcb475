import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import type { Agent, Permission } from "../../contract/index.ts";
import type { Dialect, LoadHabit } from "../acp/dialect.ts";
import type { Enforcement, OpenRequest } from "../port.ts";
import type { AdapterPackage } from "./adapter.ts";
import type { ToolTable } from "./tools.ts";

/** What is particular about one vendor's agent: data, and our words translated into its own. */
export interface Vendor {
  readonly name: string;
  readonly title: string;
  /** The person's own program, as it is called on the PATH. */
  readonly program: string;
  readonly speaks: Speaks;
  /** How to get the program, in one sentence. */
  readonly howToInstall: string;
  readonly howToSignIn: string;
  /** Variables of the person that it needs: names, or `NAME_*` for all that begin so. */
  readonly env: readonly string[];
  readonly known: Pick<Agent, "steer" | "load" | "fork" | "cost" | "questions" | "metersCalls">;
  readonly enforces: Enforcement;
  /** What it calls each tool that a profile may name; absent where it cannot be held to any. */
  readonly tools?: ToolTable;
  readonly mcpServers?: NonNullable<Agent["servers"]>;
  readonly modes?: Readonly<Record<Permission, readonly string[]>>;
  /** It asks where it should change nothing, and must then be denied whatever anybody says. */
  readonly asksInReadOnly?: boolean;
  readonly load?: LoadHabit;
  readonly startsFirstAlone?: boolean;
  readonly countsLastCall?: boolean;
  readonly ownTool?: NonNullable<Dialect["ownTool"]>;
  readonly isNoise?: NonNullable<Dialect["isNoise"]>;
  readonly callUsage?: NonNullable<Dialect["callUsage"]>;
  readonly retrying?: NonNullable<Dialect["retrying"]>;
  /** Whether somebody is signed in, from files and variables only; null where those do not tell. */
  readonly signedIn: (look: Look) => boolean | null;
  readonly launch?: (request: OpenRequest, at: Surroundings) => Extra;
  readonly servers?: (request: OpenRequest) => McpServer[];
  readonly meta?: (request: OpenRequest, at: Surroundings) => Readonly<Record<string, unknown>>;
}

/** The program speaks ACP itself, or an adapter of Kinfold's does and starts the program. */
export type Speaks =
  | { readonly arguments: readonly string[] }
  | { readonly adapter: AdapterPackage; readonly programVariable: string };

/** What a vendor needs beside the usual start. */
export interface Extra {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Surroundings {
  /** Files and folders that no agent has any business in: Kinfold's own home. */
  readonly closed: readonly string[];
  /** A folder of this vendor, for what Kinfold writes for it. */
  readonly folder: string;
}

/** What can be seen of a person's machine without starting anything. */
export interface Look {
  readonly env: NodeJS.ProcessEnv;
  /** The person's home folder. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly has: (path: string) => boolean;
  /** The text of a small file, or an empty one. */
  readonly read: (path: string) => string;
}

/** Variables about the network that every vendor's program understands. */
export const NETWORK = [
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "ALL_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
  "all_proxy",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
];

/** A blocking call of ours may last this long: the daemon ends it sooner, with an answer. */
export const TOOL_MS = 3_600_000;
