import { join } from "node:path";
import { type Look, NETWORK, TOOL_MS, type Vendor } from "../vendor.ts";

/** Goose has a single permission setting and no sandbox. */
export const goose: Vendor = {
  name: "goose",
  title: "Goose",
  program: "goose",
  speaks: { arguments: ["acp"] },
  howToInstall: "see https://block.github.io/goose",
  howToSignIn: "run: goose configure",
  env: [...NETWORK, "GOOSE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"],
  known: { steer: "none", load: true, fork: false, cost: "tokens", questions: false },
  enforces: { "read-only": "asked", ask: "asked", workspace: "asked", full: "agent" },
  asksInReadOnly: true,
  signedIn,
  launch: ({ permission }) => ({
    env: {
      GOOSE_MODE: permission === "full" ? "auto" : "approve",
      GOOSE_MCP_TIMEOUT: String(TOOL_MS / 1000),
    },
  }),
};

function signedIn({ env, home, has }: Look): boolean | null {
  const folder = env["XDG_CONFIG_HOME"] || join(home, ".config");
  return has(join(folder, "goose", "config.yaml")) || Boolean(env["GOOSE_PROVIDER"]) ? true : null;
}
