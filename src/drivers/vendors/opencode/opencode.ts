import { join } from "node:path";
import type { Permission } from "../../../contract/index.ts";
import { ownToolAfter, SERVER_NAME } from "../../acp/update/own-tool.ts";
import { deniedTools } from "../tools.ts";
import { type Look, NETWORK, TOOL_MS, type Vendor } from "../vendor.ts";

const MORE_KEYS = ["OPENROUTER_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "XAI_API_KEY"];

/** In OpenCode the rule `edit` covers every tool that edits. */
const TOOLS = {
  Read: ["read"],
  Edit: ["edit"],
  Write: ["edit", "write"],
  Bash: ["bash"],
  Grep: ["grep"],
  Glob: ["glob"],
  LS: ["list"],
  WebFetch: ["webfetch"],
  WebSearch: ["websearch", "codesearch"],
  TodoWrite: ["todowrite", "todoread"],
  Skill: ["skill"],
};

/** All our settings are in one environment variable, which OpenCode merges over its own configuration. */
export const opencode: Vendor = {
  name: "opencode",
  title: "OpenCode",
  program: "opencode",
  speaks: { arguments: ["acp"] },
  howToInstall: "npm install -g opencode-ai",
  howToSignIn: "run: opencode auth login",
  env: [...NETWORK, "OPENCODE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", ...MORE_KEYS],
  known: { steer: "queue", load: true, fork: true, cost: "usd", metersCalls: true, questions: false },
  enforces: { "read-only": "agent", ask: "asked", workspace: "asked", full: "agent" },
  // About one load in ten got no answer until it was retried.
  load: { limitMs: 30_000, tries: 2 },
  // The first start creates a database. When several first starts ran at once, all but one died.
  startsFirstAlone: true,
  countsLastCall: true,
  // A call of our tool has kind `other` and the tool's name (`kinfold_…`) as its first title.
  ownTool: ({ title, kind }) => (kind === "other" ? ownToolAfter(title, [`${SERVER_NAME}_`]) : null),
  signedIn,
  tools: TOOLS,
  mcpServers: "named",
  launch: (request, { closed }) => ({
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        permission: {
          ...serverRules(request.servers),
          ...rulesOf(request.permission, closed),
          ...Object.fromEntries(deniedTools(TOOLS, request).map((tool) => [tool, "deny"])),
        },
        experimental: { mcp_timeout: TOOL_MS },
      }),
    },
  }),
};

/**
 * The last matching rule wins. Sub-agents are denied in every mode, because a sub-agent that asks for
 * permission would block its parent's prompt forever.
 */
function rulesOf(mode: Permission, closed: readonly string[]): Record<string, unknown> {
  const change = { "read-only": "deny", ask: "ask", workspace: "ask", full: "allow" }[mode];
  const outside = mode === "full" ? "allow" : "ask";
  return {
    edit: mode === "workspace" ? "allow" : change,
    bash: change,
    webfetch: mode === "full" ? "allow" : "ask",
    task: "deny",
    external_directory: {
      "*": outside,
      ...Object.fromEntries(closed.flatMap((path) => [path, join(path, "**")]).map((path) => [path, "deny"])),
    },
  };
}

/**
 * A server's tools are named `<server>_<tool>`. The pattern `*_*` also matches `external_directory`, the only
 * built-in rule with an underscore, so that rule is set again.
 */
function serverRules(servers: readonly string[] | null): Record<string, string> {
  if (servers === null) return {};
  const given = [SERVER_NAME, ...servers].map((name) => [`${name}_*`, "allow"]);
  return { "*_*": "deny", external_directory: "ask", ...Object.fromEntries(given) };
}

function signedIn({ env, home, has, read }: Look): boolean | null {
  const data = env["XDG_DATA_HOME"] || join(home, ".local", "share");
  if (read(join(data, "opencode", "auth.json")).length > 4) return true;
  if (opencode.env.some((name) => name.endsWith("_API_KEY") && Boolean(env[name]))) return true;
  // If OpenCode was ever used or configured, its model may need no account. So the result is null (unknown).
  const config = join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "opencode");
  return has(config) || has(join(data, "opencode")) ? null : false;
}
