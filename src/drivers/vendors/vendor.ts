import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import type { Agent, Permission } from "../../contract/index.ts";
import type { Dialect, LoadHabit } from "../acp/dialect.ts";
import type { Enforcement, OpenRequest } from "../port.ts";
import type { AdapterPackage } from "./adapter.ts";
import type { ToolTable } from "./tools.ts";

/** The peculiarities of one vendor's agent: data, and translations from our terms into the vendor's. */
export interface Vendor {
  readonly name: string;
  readonly title: string;
  /** The name of the person's program on the PATH. */
  readonly program: string;
  readonly speaks: Speaks;
  /** How to install the program, in one sentence. */
  readonly howToInstall: string;
  readonly howToSignIn: string;
  /** The person's variables that it needs: names, or `NAME_*` for every name with that prefix. */
  readonly env: readonly string[];
  readonly known: Pick<Agent, "steer" | "load" | "fork" | "cost" | "questions" | "metersCalls">;
  readonly enforces: Enforcement;
  /** Its name for each tool that a profile may list; absent if its tools cannot be restricted. */
  readonly tools?: ToolTable;
  readonly mcpServers?: NonNullable<Agent["servers"]>;
  readonly modes?: Readonly<Record<Permission, readonly string[]>>;
  /** In read-only mode it asks for permission to make changes, which must always be denied. */
  readonly asksInReadOnly?: boolean;
  readonly load?: LoadHabit;
  readonly startsFirstAlone?: boolean;
  readonly countsLastCall?: boolean;
  readonly ownTool?: NonNullable<Dialect["ownTool"]>;
  readonly isNoise?: NonNullable<Dialect["isNoise"]>;
  readonly callUsage?: NonNullable<Dialect["callUsage"]>;
  readonly retrying?: NonNullable<Dialect["retrying"]>;
  /** Whether a person is signed in, according to files and variables; null if these do not show it. */
  readonly signedIn: (look: Look) => boolean | null;
  readonly launch?: (request: OpenRequest, at: Surroundings) => Extra;
  readonly servers?: (request: OpenRequest) => McpServer[];
  readonly meta?: (request: OpenRequest, at: Surroundings) => Readonly<Record<string, unknown>>;
}

/** Either the program speaks ACP itself, or an adapter does and starts the program. */
export type Speaks =
  | { readonly arguments: readonly string[] }
  | { readonly adapter: AdapterPackage; readonly programVariable: string };

/** Arguments and variables that a vendor needs in addition. */
export interface Extra {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Surroundings {
  /** Files and folders that no agent may access: Kinfold's home. */
  readonly closed: readonly string[];
  /** A folder for the files that Kinfold writes for this vendor. */
  readonly folder: string;
}

/** What can be read from a person's machine without starting a program. */
export interface Look {
  readonly env: NodeJS.ProcessEnv;
  /** The person's home folder. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly has: (path: string) => boolean;
  /** Returns the text of a small file, or an empty string. */
  readonly read: (path: string) => string;
}

/** Network variables that every vendor's program understands. */
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

/** The time limit for a blocking call of our tools: the daemon answers before it ends. */
export const TOOL_MS = 3_600_000;
