import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { TestHome } from "../../support/daemon.ts";
import { adaptersDir, programPath } from "./cache.ts";
import type { ProgramName } from "./cache.ts";

/**
 * Prepares an environment with only these agents: their programs on the PATH, Kinfold's adapters where
 * `kinfold agents add` puts them, dummy keys, and every address pointing at the scripted model. Returns the
 * daemon's environment.
 */
export function surround(
  home: Pick<TestHome, "home" | "work">,
  names: readonly ProgramName[],
  modelUrl: string,
): Record<string, string> {
  const bin = path.join(home.work, "bin");
  mkdirSync(bin, { recursive: true });
  mkdirSync(path.join(home.home, "agents"), { recursive: true });
  const env: Record<string, string> = { PATH: `${bin}:${process.env["PATH"] ?? ""}` };
  for (const name of names) {
    symlinkSync(programPath(name), path.join(bin, name));
    if (name === "claude" || name === "codex") {
      symlinkSync(path.join(adaptersDir(), name), path.join(home.home, "agents", name));
    }
    Object.assign(env, SETUPS[name](home.work, modelUrl));
  }
  return env;
}

/** Writes the files that the program reads from its home and returns the variables that it needs. */
type Setup = (userHome: string, modelUrl: string) => Record<string, string>;

const SETUPS: Readonly<Record<ProgramName, Setup>> = { claude, codex, gemini, opencode, pi };

function claude(userHome: string, modelUrl: string): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: "dummy-key",
    CLAUDE_CONFIG_DIR: path.join(userHome, ".claude"),
    CLAUDE_CODE_TMPDIR: userHome,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
  };
}

function codex(userHome: string, modelUrl: string): Record<string, string> {
  const folder = path.join(userHome, ".codex");
  put(
    path.join(folder, "config.toml"),
    `model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
remote_plugin = false
plugin_sharing = false
plugin_discovery_prefetch = false
apps = false
tool_suggest = false
skill_search = false
skill_mcp_dependency_install = false
[model_providers.scripted]
name = "Scripted"
base_url = "${modelUrl}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`,
  );
  return { CODEX_HOME: folder, OPENAI_API_KEY: "dummy", MODEL_PROVIDER: "scripted" };
}

function gemini(userHome: string, modelUrl: string): Record<string, string> {
  put(
    path.join(userHome, ".gemini", "settings.json"),
    JSON.stringify({
      security: { auth: { selectedType: "gemini-api-key" } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      model: { name: "gemini-2.5-pro" },
    }),
  );
  return { GEMINI_API_KEY: "dummy", GOOGLE_GEMINI_BASE_URL: modelUrl };
}

function opencode(userHome: string, modelUrl: string): Record<string, string> {
  const limit = { context: 200_000, output: 8_000 };
  const scripted = {
    npm: "@ai-sdk/openai-compatible",
    name: "Scripted",
    options: { baseURL: `${modelUrl}/v1`, apiKey: "dummy" },
    models: { m1: { name: "m1", tool_call: true, limit } },
  };
  const config = {
    autoupdate: false,
    share: "disabled",
    model: "scripted/m1",
    small_model: "scripted/m1",
    enabled_providers: ["scripted"],
    provider: { scripted },
  };
  put(path.join(userHome, ".config", "opencode", "opencode.json"), JSON.stringify(config));
  // At every start, OpenCode looks for one of its packages in the registry. Nothing listens at this address,
  // so nothing is downloaded.
  put(path.join(userHome, ".npmrc"), "registry=http://127.0.0.1:9/\n");
  return {
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  };
}

function pi(userHome: string, modelUrl: string): Record<string, string> {
  const models = [{ id: "m1", name: "m1", contextWindow: 200_000, maxTokens: 8_000 }];
  const scripted = { baseUrl: `${modelUrl}/v1`, api: "openai-completions", apiKey: "dummy", models };
  const folder = path.join(userHome, ".pi", "agent");
  put(path.join(folder, "models.json"), JSON.stringify({ providers: { scripted } }));
  const settings = { defaultProvider: "scripted", defaultModel: "m1" };
  put(path.join(folder, "settings.json"), JSON.stringify(settings));
  return { PI_OFFLINE: "1", PI_TELEMETRY: "0" };
}

function put(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}
