import { join } from "node:path";
import { type CallUsage, type Retrying, serversWith } from "../../acp/dialect.ts";
import { ownToolAfter, SERVER_NAME } from "../../acp/update/own-tool.ts";
import { type Fields, fieldsOf, isFields, numberOf } from "../../../text/fields.ts";
import { allowedTools } from "../tools.ts";
import { type Look, NETWORK, TOOL_MS, type Vendor } from "../vendor.ts";

/** Disabled tools: they start or use sub-agents that no caller can see, stop or account for. */
const OWN_AGENTS = ["Agent", "Task", "Workflow", "ListAgents", "SendMessage"];
const EDITS = ["Edit", "Write", "NotebookEdit"];
const TOOLS =
  "Read Edit Write NotebookEdit Bash BashOutput KillShell Grep Glob LS WebFetch WebSearch TodoWrite Skill ExitPlanMode AskUserQuestion".split(
    " ",
  );

/**
 * Claude Code through its ACP adapter. The adapter passes MCP headers as an argument of `claude`, which every
 * user of the machine can read. So the header names a variable, which Claude Code replaces with the token.
 */
export const claude: Vendor = {
  name: "claude",
  title: "Claude Code",
  program: "claude",
  speaks: {
    adapter: {
      name: "claude",
      package: "@agentclientprotocol/claude-agent-acp",
      version: "0.99.1",
      entry: "dist/index.js",
      installedBytes: 55_300_000,
    },
    programVariable: "CLAUDE_CODE_EXECUTABLE",
  },
  howToInstall: "npm install -g @anthropic-ai/claude-code",
  howToSignIn: "run: claude",
  env: [
    ...NETWORK,
    "ANTHROPIC_*",
    "CLAUDE_*",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
    "DISABLE_ERROR_REPORTING",
  ],
  known: { steer: "inject", load: true, fork: true, cost: "usd", metersCalls: true, questions: true },
  enforces: { "read-only": "agent", ask: "asked", workspace: "asked", full: "agent" },
  tools: Object.fromEntries(TOOLS.map((name) => [name, [name]])),
  mcpServers: "ours",
  modes: {
    "read-only": ["plan"],
    ask: ["default"],
    workspace: ["acceptEdits"],
    // As root, the adapter has no `bypassPermissions`. It then uses `acceptEdits`, and we allow each request.
    full: ["bypassPermissions", "acceptEdits"],
  },
  // The tool's name (`mcp__kinfold__spawn_session`) comes in its own field, never in the title.
  ownTool: ({ name }) => ownToolAfter(name, [`mcp__${SERVER_NAME}__`]),
  callUsage,
  retrying,
  signedIn,
  launch: ({ mcp }) => ({
    env: { MCP_TOOL_TIMEOUT: String(TOOL_MS), ...(mcp === null ? {} : { KINFOLD_TOKEN: mcp.token }) },
  }),
  // oxlint-disable-next-line no-template-curly-in-string -- Claude Code replaces it itself.
  servers: (request) => serversWith(request, () => "Bearer ${KINFOLD_TOKEN}"),
  meta: (request, { closed }) => ({
    claudeCode: {
      // Only the model's raw messages have the tokens of each call. Only the raw `api_retry` messages report
      // retries after a 401, which last for minutes; the adapter itself does not report them.
      emitRawSDKMessages: [{ type: "assistant" }, { type: "system", subtype: "api_retry" }],
      options: {
        allowedTools: [`mcp__${SERVER_NAME}`],
        disallowedTools: [
          ...OWN_AGENTS,
          ...(request.permission === "read-only" ? EDITS : []),
          ...request.notTools,
        ],
        ...(request.tools === null ? {} : { tools: allowedTools(claude.tools ?? {}, request) }),
        ...(request.servers === null ? {} : { strictMcpConfig: true }),
        settings: { permissions: { deny: closed.flatMap(denials) } },
        promptSuggestions: false,
      },
    },
  }),
};

function callUsage(method: string, params: unknown): CallUsage | null {
  const { type, message } = rawMessage(method, params);
  const { id, usage } = fieldsOf(message);
  if (type !== "assistant" || typeof id !== "string" || !isFields(usage)) return null;
  return {
    id,
    inputTokens: numberOf(usage["input_tokens"]) + numberOf(usage["cache_creation_input_tokens"]),
    cachedTokens: numberOf(usage["cache_read_input_tokens"]),
    outputTokens: numberOf(usage["output_tokens"]),
  };
}

function retrying(method: string, params: unknown): Retrying | null {
  const row = rawMessage(method, params);
  if (row["type"] !== "system" || row["subtype"] !== "api_retry") return null;
  const number = (name: string): number | null => (typeof row[name] === "number" ? row[name] : null);
  return { status: number("error_status"), attempt: number("attempt"), attemptsMax: number("max_retries") };
}

function rawMessage(method: string, params: unknown): Fields {
  return fieldsOf(method === "_claude/sdkMessage" ? fieldsOf(params)["message"] : null);
}

/** In Claude Code's permission rules, an absolute path begins with two slashes. */
function denials(path: string): string[] {
  return ["Read", "Edit"].flatMap((tool) => [`${tool}(/${path})`, `${tool}(/${path}/**)`]);
}

function signedIn({ env, home, platform, has, read }: Look): boolean | null {
  const isGiven = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
  ].some((name) => Boolean(env[name]));
  if (isGiven) return true;
  const folder = env["CLAUDE_CONFIG_DIR"] || join(home, ".claude");
  if (has(join(folder, ".credentials.json"))) return true;
  if (read(join(folder, "settings.json")).includes('"apiKeyHelper"')) return true;
  const accountFile = env["CLAUDE_CONFIG_DIR"] ? join(folder, ".claude.json") : join(home, ".claude.json");
  if (read(accountFile).includes('"oauthAccount"')) return true;
  return platform === "darwin" ? null : false;
}
