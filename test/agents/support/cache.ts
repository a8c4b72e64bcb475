import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { locateAdapter, VENDORS } from "../../../src/drivers/vendors/index.ts";

/** The real programs in pinned versions: what we know about them was measured with these. */
export const PROGRAMS = {
  claude: {
    package: "@anthropic-ai/claude-code",
    version: "2.1.325",
    program: `node_modules/@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`,
  },
  codex: {
    package: "@openai/codex",
    version: "0.166.0",
    program: `node_modules/@openai/codex-${process.platform}-${process.arch}/vendor/${triple()}/bin/codex`,
  },
  gemini: {
    package: "@google/gemini-cli",
    version: "0.61.0",
    program: "node_modules/@google/gemini-cli/bundle/gemini.js",
  },
  opencode: {
    package: "opencode-ai",
    version: "1.18.33",
    program: `node_modules/opencode-${process.platform}-${process.arch}/bin/opencode`,
  },
  pi: {
    package: "@mariozechner/pi-coding-agent",
    version: "0.73.1",
    program: "node_modules/@mariozechner/pi-coding-agent/dist/cli.js",
  },
} as const;

export type ProgramName = keyof typeof PROGRAMS;
export const PROGRAM_NAMES = Object.keys(PROGRAMS) as ProgramName[];
/** The agents that can use our tools, and so can be parents. */
export const PARENT_NAMES = PROGRAM_NAMES.filter((name) => name !== "pi");

/** The cache is outside the repository, because it takes gigabytes and all checkouts share it. */
export function cacheDir(): string {
  return CACHE;
}

/** Evaluated once, because tests change the home directory. */
const CACHE = process.env["KINFOLD_AGENTS_CACHE"] ?? path.join(homedir(), ".cache", "kinfold-agents");

/** The adapters, laid out like the `agents` folder of a home. */
export function adaptersDir(): string {
  return path.join(cacheDir(), "adapters");
}

export function programPath(name: ProgramName): string {
  return path.join(cacheDir(), name, PROGRAMS[name].program);
}

export function isCached(name: ProgramName): boolean {
  const { package: packageName, version } = PROGRAMS[name];
  const manifest = path.join(cacheDir(), name, "node_modules", packageName, "package.json");
  if (!existsSync(manifest) || !existsSync(programPath(name))) return false;
  return (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version === version;
}

/** Returns why a test is skipped: which programs are missing from the cache. False if none is missing. */
export function missing(...names: ProgramName[]): string | false {
  const left = names.filter((name) => !isCached(name) || !hasAdapter(name));
  return left.length > 0 && `${left.join(", ")} not in the cache: npm run test:agents`;
}

function hasAdapter(name: ProgramName): boolean {
  const speaks = VENDORS.find((vendor) => vendor.name === name)?.speaks;
  if (speaks === undefined || !("adapter" in speaks)) return true;
  return "path" in locateAdapter(speaks.adapter, { agentsDir: adaptersDir() });
}

function triple(): string {
  const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
  return process.platform === "darwin" ? `${machine}-apple-darwin` : `${machine}-unknown-linux-musl`;
}
