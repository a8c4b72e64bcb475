import type { Agent } from "../../contract/index.ts";
import type { Dialect } from "../acp/dialect.ts";
import type { Enforcement, OpenRequest } from "../port.ts";
import type { Fields } from "../../text/fields.ts";
import type { AdapterPackage } from "./adapter.ts";
import type { ToolTable } from "./tools.ts";

/** One vendor's agent: data, and translations from our terms into the vendor's. */
export interface Vendor extends Omit<Dialect, Derived> {
  readonly name: string;
  readonly title: string;
  /** The name of the agent's program, which is looked up on the person's PATH. */
  readonly program: string;
  readonly speaks: Speaks;
  /** How to install the program, in one sentence. */
  readonly howToInstall: string;
  readonly howToSignIn: string;
  /** The person's environment variables that the program needs; `NAME_*` means all with that prefix. */
  readonly env: readonly string[];
  readonly known: Pick<Agent, "steer" | "load" | "fork" | "cost" | "questions" | "metersCalls">;
  readonly enforces: Enforcement;
  /** Absent if the vendor's tools cannot be restricted. */
  readonly tools?: ToolTable;
  readonly mcpServers?: NonNullable<Agent["servers"]>;
  /** The agent asks for permission to make changes even in read-only mode. Every such request is denied. */
  readonly asksInReadOnly?: boolean;
  /** Whether a person is signed in; null if files and variables do not show it. */
  readonly signedIn: (look: Look) => boolean | null;
  readonly launch?: (request: OpenRequest, at: Surroundings) => Extra;
  readonly meta?: (request: OpenRequest, at: Surroundings) => Fields;
}

/** The fields that the driver derives from a vendor's other fields. */
type Derived = "launch" | "meta" | "answers" | "secondPrompt" | "version";

/** Either the program speaks ACP itself, or an adapter does and starts the program. */
type Speaks =
  | { readonly arguments: readonly string[] }
  | { readonly adapter: AdapterPackage; readonly programVariable: string };

export interface Extra {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Surroundings {
  /** Paths that the agent may not access: Kinfold's home, or some files and folders in it. */
  readonly closed: readonly string[];
  /** The folder for the files that Kinfold writes for this vendor. */
  readonly folder: string;
}

/** What can be read from a person's machine without starting a program. */
export interface Look {
  readonly env: NodeJS.ProcessEnv;
  /** The person's home folder. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly has: (path: string) => boolean;
  /** Returns an empty string if the file cannot be read. */
  readonly read: (path: string) => string;
}

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

/** The time limit of a call to our tools. The daemon answers a blocking call before this limit. */
export const TOOL_MS = 3_600_000;
