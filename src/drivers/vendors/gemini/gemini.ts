import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { ownToolAfter, SERVER_NAME } from "../../acp/update/own-tool.ts";
import { deniedTools } from "../tools.ts";
import { type Look, NETWORK, type Surroundings, type Vendor } from "../vendor.ts";

const TOOLS = {
  Read: ["read_file", "read_many_files"],
  Edit: ["replace"],
  Write: ["write_file"],
  Bash: ["run_shell_command"],
  Grep: ["grep_search", "search_file_content"],
  Glob: ["glob"],
  LS: ["list_directory"],
  WebFetch: ["web_fetch"],
  WebSearch: ["google_web_search"],
  TodoWrite: ["write_todos"],
  Skill: ["activate_skill"],
};

/** Gemini CLI. Without `GEMINI_CLI_TRUST_WORKSPACE` it silently drops our tools in an untrusted folder. */
export const gemini: Vendor = {
  name: "gemini",
  title: "Gemini CLI",
  program: "gemini",
  speaks: { arguments: ["--acp"] },
  howToInstall: "npm install -g @google/gemini-cli",
  howToSignIn: "run: gemini",
  env: [...NETWORK, "GEMINI_*", "GOOGLE_*", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_*"],
  known: { steer: "restart", load: true, fork: false, cost: "tokens", metersCalls: true, questions: false },
  enforces: { "read-only": "agent", ask: "asked", workspace: "asked", full: "agent" },
  tools: TOOLS,
  mcpServers: "named",
  modes: { "read-only": ["plan"], ask: ["default"], workspace: ["autoEdit"], full: ["yolo"] },
  load: { waitMs: untilLaterMinute, waitMaxMs: 61_000, replayQuietMs: 1_000 },
  // Gemini reports a change of mode as text of its model. Such text is left out.
  isNoise: (update) =>
    update.sessionUpdate === "agent_message_chunk" &&
    update.content.type === "text" &&
    update.content.text.startsWith("[MODE_UPDATE] "),
  // The call's id begins with the tool's name (`mcp_kinfold_spawn_session__…`). The name of another server
  // may also begin with `kinfold_`, so the title must confirm that the server is ours.
  ownTool({ id, title }) {
    const [name = null] = id.split(/__|-/, 1);
    const tool = ownToolAfter(name, [`mcp_${SERVER_NAME}_`]);
    return tool !== null && title === `${tool} (${SERVER_NAME} MCP Server)` ? tool : null;
  },
  signedIn,
  launch: (request, at) => ({
    args: [
      "--admin-policy",
      writePolicy(at, deniedTools(TOOLS, request)),
      ...(request.servers === null ? [] : serverArguments(request.servers)),
    ],
    env: { GEMINI_CLI_TRUST_WORKSPACE: "true", GEMINI_CLI_NO_RELAUNCH: "1" },
  }),
};

function serverArguments(servers: readonly string[]): string[] {
  return [SERVER_NAME, ...servers].flatMap((name) => ["--allowed-mcp-server-names", name]);
}

type Rule = Readonly<Record<string, string | number>>;

/** The policy disables Gemini's sub-agents, always allows our tools and denies access to Kinfold's home. */
function writePolicy({ closed, folder }: Surroundings, notTools: readonly string[]): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `policy-${nameOf([...closed, "", ...notTools])}.toml`);
  const rules: Rule[] = [
    ...["invoke_agent", ...notTools].map((toolName) => ({ toolName, decision: "deny", priority: 900 })),
    { toolName: "*", mcpName: SERVER_NAME, decision: "allow", priority: 800 },
    ...closed.map((one) => ({
      toolName: "*",
      argsPattern: RegExp.escape(one),
      decision: "deny",
      priority: 950,
    })),
  ];
  const text = rules.map((rule) => `[[rule]]\n${lines(rule)}`).join("\n");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** Names the policy file after its content, so sessions with the same denied folders and tools share it. */
function nameOf(kept: readonly string[]): string {
  return createHash("sha256").update(kept.join("\0")).digest("hex").slice(0, 12);
}

function lines(rule: Rule): string {
  return Object.entries(rule)
    .map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
    .join("");
}

/**
 * Returns how many milliseconds to wait before a session is loaded. Gemini names the session's file after the
 * minute in which the session was started or last loaded. Loading it again in the same minute would
 * irrevocably empty the file.
 */
function untilLaterMinute(agentSessionId: string): number {
  const now = Date.now();
  const minute = new Date(now).toISOString().slice(0, 16).replace(":", "-");
  const name = `session-${minute}-${agentSessionId.slice(0, 8)}.jsonl`;
  const root = join(process.env["GEMINI_CLI_HOME"] || homedir(), ".gemini", "tmp");
  const isThere = list(root).some((project) => list(join(root, project, "chats")).includes(name));
  return isThere ? MINUTE_MS - (now % MINUTE_MS) + SLACK_MS : 0;
}

const MINUTE_MS = 60_000;
const SLACK_MS = 100;

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function signedIn({ env, home, has, read }: Look): boolean | null {
  if (env["GEMINI_API_KEY"] || env["GOOGLE_API_KEY"] || env["GOOGLE_GENAI_USE_VERTEXAI"]) return true;
  const folder = join(env["GEMINI_CLI_HOME"] || home, ".gemini");
  if (has(join(folder, "oauth_creds.json")) || has(join(folder, "google_accounts.json"))) return true;
  if (/^\s*(?:export\s+)?(?:GEMINI|GOOGLE)_API_KEY=/m.test(read(join(folder, ".env")))) return true;
  return /"selectedType":\s*"(?:vertex-ai|cloud-shell|compute-default-credentials|gateway)"/.test(
    read(join(folder, "settings.json")),
  )
    ? null
    : false;
}
