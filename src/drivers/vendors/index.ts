import { claude } from "./claude/claude.ts";
import { codex } from "./codex/codex.ts";
import { gemini } from "./gemini/gemini.ts";
import { goose } from "./goose/goose.ts";
import { opencode } from "./opencode/opencode.ts";
import type { Vendor } from "./vendor.ts";

export const VENDORS: readonly Vendor[] = [claude, codex, gemini, opencode, goose];

export { agentsDirOf } from "./driver.ts";
export { installAdapter, locateAdapter } from "./adapter.ts";
export type { AdapterPackage, InstallProgress } from "./adapter.ts";
export type { Vendor } from "./vendor.ts";
