import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Permission, Profile } from "../contract/index.ts";
import { ProfileHead } from "../contract/profile.ts";
import { ConfigError } from "./problem.ts";
import { yaml } from "./yaml.ts";

const BUILT_IN = fileURLToPath(new URL("./profiles/", import.meta.url));
const PROJECT_FOLDER = join(".kinfold", "agents");

/** Claude Code's own words for its modes, understood so that its agent files can be used as they are. */
const CLAUDE_MODES: Readonly<Record<string, Permission>> = {
  plan: "read-only",
  default: "ask",
  acceptEdits: "workspace",
  bypassPermissions: "full",
};

export interface ProfileSet {
  readonly profiles: readonly Profile[];
  /** Profile files of a project that nobody has trusted: they are there and not used. */
  readonly untrusted: readonly { name: string; file: string }[];
}

/** Built in, then the home's, then a trusted project's; the later wins. A bad file is an error that names it. */
export function loadProfiles(places: { home: string; project: string | null }): ProfileSet {
  const found = new Map<string, Profile>();
  for (const file of filesIn(BUILT_IN)) add(found, readProfile(file, "built in"));
  for (const file of filesIn(join(places.home, "profiles"))) add(found, readProfile(file, file));
  const untrusted: { name: string; file: string }[] = [];
  const folder = places.project === null ? null : join(places.project, PROJECT_FOLDER);
  for (const file of folder === null ? [] : filesIn(folder)) {
    if (isTrusted(places.home, file)) add(found, readProfile(file, file));
    else untrusted.push({ name: basename(file, ".md"), file });
  }
  return { profiles: [...found.values()], untrusted };
}

/** Read anew only when the file has changed: every spawn asks. */
export function readProfile(file: string, from: string): Profile {
  const { mtimeMs, size } = statSync(file);
  const state = `${mtimeMs} ${size} ${from}`;
  const before = known.get(file);
  if (before?.state === state) return before.profile;
  const profile = parseProfile(file, from);
  known.set(file, { state, profile });
  return profile;
}

const known = new Map<string, { state: string; profile: Profile }>();

function parseProfile(file: string, from: string): Profile {
  const text = readFileSync(file, "utf8");
  const match = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$/.exec(text);
  if (match === null) throw problem(file, 1, "it must begin with front matter between two lines of ---");
  let data: unknown;
  try {
    data = yaml().parse(match[1] ?? "");
  } catch (error) {
    const line = (error as { linePos?: { line: number }[] }).linePos?.[0]?.line ?? 1;
    throw problem(
      file,
      line + 1,
      error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error),
    );
  }
  const result = ProfileHead.safeParse(data);
  if (!result.success) {
    const [issue] = result.error.issues;
    const key = issue?.code === "unrecognized_keys" ? issue.keys[0] : issue?.path[0];
    throw problem(
      file,
      lineOf(match[1] ?? "", String(key ?? "")),
      `${String(key ?? "it")}: ${issue?.message ?? "is wrong"}`,
    );
  }
  return profileOf(result.data, (match[2] ?? "").trim(), from);
}

/** A person has read these files of a project as they are now; a change makes them untrusted again. */
export function trustProject(home: string, project: string): string[] {
  const files = filesIn(join(project, PROJECT_FOLDER));
  const trusted = { ...readTrusted(home) };
  for (const file of files) trusted[realpathSync(file)] = hashOf(file);
  writeFileSync(join(home, "trusted.json"), `${JSON.stringify(trusted, null, 2)}\n`, { mode: 0o600 });
  return files;
}

function profileOf(front: ProfileHead, instructions: string, from: string): Profile {
  const mode = front.permissionMode === undefined ? null : (CLAUDE_MODES[front.permissionMode] ?? null);
  return {
    name: front.name,
    description: front.description,
    instructions,
    agent: front.agent ?? null,
    model: front.model ?? null,
    permission: front.permission ?? mode,
    tools: listOf(front.tools),
    disallowedTools: listOf(front.disallowedTools) ?? [],
    mcp: listOf(front.mcp),
    limits: front.limits ?? {},
    inherit: front.inherit ?? null,
    callback: front.callback ?? {},
    accepts: listOf(front.accepts) ?? [],
    maxTurns: front.maxTurns ?? null,
    from,
  };
}

function listOf(value: string | string[] | undefined): string[] | null {
  if (value === undefined) return null;
  const items = typeof value === "string" ? value.split(",") : value;
  return items.map((item) => item.trim()).filter((item) => item !== "");
}

function add(found: Map<string, Profile>, profile: Profile): void {
  found.set(profile.name, profile);
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith(".md"));
  return names.toSorted().map((name) => join(folder, name));
}

function isTrusted(home: string, file: string): boolean {
  return readTrusted(home)[realpathSync(file)] === hashOf(file);
}

function readTrusted(home: string): Record<string, string> {
  const file = join(home, "trusted.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Record<string, string>) : {};
}

function hashOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

function lineOf(head: string, key: string): number {
  const at = head.split("\n").findIndex((line) => line.trimStart().startsWith(`${key}:`));
  return at === -1 ? 2 : at + 2;
}

function problem(file: string, line: number, text: string): ConfigError {
  return new ConfigError([{ where: file, line, key: null, text }]);
}
