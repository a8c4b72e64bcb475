import { join } from "node:path";
import { knownOwnTool, SERVER_NAME } from "../../acp/update/own-tool.ts";
import { fieldsOf } from "../../../text/fields.ts";
import type { OpenRequest } from "../../port.ts";
import { type Look, NETWORK, TOOL_MS, type Vendor } from "../vendor.ts";

/**
 * Codex through its ACP adapter. Our tools are set in Codex's configuration, because calls to tools that are
 * set over the protocol may take at most five minutes. The configuration names the variable that has the
 * token.
 */
export const codex: Vendor = {
  name: "codex",
  title: "Codex",
  program: "codex",
  speaks: {
    adapter: {
      name: "codex",
      package: "@agentclientprotocol/codex-acp",
      version: "2.6.0",
      entry: "dist/index.js",
      installedBytes: 18_700_000,
    },
    programVariable: "CODEX_PATH",
  },
  howToInstall: "npm install -g @openai/codex",
  howToSignIn: "run: codex login",
  env: [...NETWORK, "CODEX_HOME", "CODEX_API_KEY", "OPENAI_*", "AZURE_OPENAI_*", "MODEL_PROVIDER"],
  known: { steer: "inject", load: true, fork: true, cost: "tokens", metersCalls: true, questions: true },
  enforces: { "read-only": "os", ask: "os", workspace: "os", full: "agent" },
  modes: {
    "read-only": ["read-only"],
    // `ask` uses read-only, where Codex asks for every change. In workspace-write it edits without asking.
    ask: ["read-only"],
    workspace: ["workspace-write"],
    full: ["agent-full-access"],
  },
  asksInReadOnly: true,
  // Trusts the input only of calls that the adapter marks as MCP calls, because there the adapter, not the
  // model, writes the input.
  ownTool({ input, isServerCall }) {
    const { server, tool } = fieldsOf(input);
    return isServerCall && server === SERVER_NAME && typeof tool === "string" ? knownOwnTool(tool) : null;
  },
  signedIn,
  launch: (request) => ({
    env: {
      NO_BROWSER: "1",
      INITIAL_AGENT_MODE: "read-only",
      CODEX_CONFIG: JSON.stringify(configOf(request)),
      ...(request.mcp === null ? {} : { KINFOLD_TOKEN: request.mcp.token }),
    },
  }),
  servers: () => [],
};

function configOf({ mcp }: OpenRequest): Record<string, unknown> {
  const server = mcp && {
    url: mcp.url,
    bearer_token_env_var: "KINFOLD_TOKEN",
    tool_timeout_sec: TOOL_MS / 1000,
    // Without this, Codex calls its model before our tools are ready, and continues without our tools if they
    // cannot be reached.
    required: true,
  };
  return {
    agents: { enabled: false },
    check_for_update_on_startup: false,
    ...(server === null ? {} : { mcp_servers: { [SERVER_NAME]: server } }),
  };
}

function signedIn({ env, home, has, read }: Look): boolean | null {
  if (env["OPENAI_API_KEY"] || env["CODEX_API_KEY"]) return true;
  const folder = env["CODEX_HOME"] || join(home, ".codex");
  if (has(join(folder, "auth.json"))) return true;
  // A custom provider may need no account, so whether the person is signed in is unknown (null).
  return /^\s*model_provider\s*=/m.test(read(join(folder, "config.toml"))) ? null : false;
}
