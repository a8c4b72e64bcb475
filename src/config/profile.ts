import { createHash } from "node:crypto";
import { readdir, readFile, realpath, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Permission, Profile } from "../contract/index.ts";
import { ProfileHead } from "../contract/profile.ts";
import { ConfigError, problemIn } from "./problem.ts";
import { yaml } from "./yaml.ts";
import { listProjectFiles, readProjectFile } from "./project-ceiling.ts";

const BUILT_IN = fileURLToPath(new URL("./profiles/", import.meta.url));
const PROJECT_FOLDER = join(".kinfold", "agents");

/** Claude Code's names for its modes, so that its agent files can be used unchanged. */
const CLAUDE_MODES: Readonly<Record<string, Permission>> = {
  plan: "read-only",
  default: "ask",
  acceptEdits: "workspace",
  bypassPermissions: "full",
};

export interface ProfileSet {
  readonly profiles: readonly Profile[];
  /** A project's profile files that no person has trusted; they are not used. */
  readonly untrusted: readonly { name: string; file: string }[];
}

/**
 * Loads the built-in profiles, then the home's, then the project's trusted ones. A later profile replaces an
 * earlier one of the same name. Throws an error that names the file if a profile is invalid.
 */
export async function loadProfiles(places: { home: string; project: string | null }): Promise<ProfileSet> {
  const found: Profile[] = [];
  for (const file of await filesIn(BUILT_IN)) found.push(await readOwn(file, "built in"));
  for (const file of await filesIn(join(places.home, "profiles"))) found.push(await readOwn(file, file));
  const untrusted: { name: string; file: string }[] = [];
  const { project } = places;
  const names = project === null ? [] : await listProjectFiles(project, PROJECT_FOLDER, ".md");
  if (project !== null && names.length > 0) {
    const trusted = await readTrusted(places.home);
    for (const name of names) {
      const file = join(project, PROJECT_FOLDER, name);
      const text = await trustedText(project, name, trusted);
      if (text === null) untrusted.push({ name: basename(name, ".md"), file });
      else found.push(parseOnce(file, text, file));
    }
  }
  const byName = new Map(found.map((profile) => [profile.name, profile]));
  return { profiles: [...byName.values()], untrusted };
}

/** Reads a profile file that may not be trusted yet, so that a person can decide whether to trust it. */
export async function readProjectProfile(project: string, file: string): Promise<Profile> {
  return parseOnce(file, await projectText(project, basename(file)), file);
}

/** Returns a file's text if a person trusted this exact text. Does not open a file that was never trusted. */
async function trustedText(
  project: string,
  name: string,
  trusted: Readonly<Record<string, string>>,
): Promise<string | null> {
  const hash = trusted[await realKey(project, name)];
  if (hash === undefined) return null;
  const read = await readProjectFile(project, join(PROJECT_FOLDER, name));
  return read.kind === "text" && hashOf(read.text) === hash ? read.text : null;
}

async function projectText(project: string, name: string): Promise<string> {
  const read = await readProjectFile(project, join(PROJECT_FOLDER, name));
  if (read.kind === "text") return read.text;
  const why = read.kind === "missing" ? "no longer exists" : read.why;
  throw problem(join(project, PROJECT_FOLDER, name), 1, `it ${why}`);
}

async function readOwn(file: string, from: string): Promise<Profile> {
  return parseOnce(file, await readFile(file, "utf8"), from);
}

/** Parses a file again only if its text has changed, because every spawn loads the profiles. */
function parseOnce(file: string, text: string, from: string): Profile {
  const before = known.get(file);
  if (before?.text === text && before.profile.from === from) return before.profile;
  const profile = parseProfile(file, text, from);
  known.set(file, { text, profile });
  return profile;
}

const known = new Map<string, { text: string; profile: Profile }>();

function parseProfile(file: string, text: string, from: string): Profile {
  const match = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$/.exec(text);
  if (match === null) throw problem(file, 1, "it must begin with front matter between two lines of ---");
  let data: unknown;
  try {
    data = yaml().parse(match[1] ?? "");
  } catch (error) {
    const line = (error as { linePos?: { line: number }[] }).linePos?.[0]?.line ?? 1;
    throw problem(file, line + 1, String(error instanceof Error ? error.message.split("\n")[0] : error));
  }
  const result = ProfileHead.safeParse(data);
  if (!result.success) {
    const [issue] = result.error.issues;
    const key = issue?.code === "unrecognized_keys" ? issue.keys[0] : issue?.path[0];
    const line = lineOf(match[1] ?? "", String(key ?? ""));
    throw problem(file, line, `${String(key ?? "it")}: ${issue?.message ?? "is not valid"}`);
  }
  return profileOf(result.data, (match[2] ?? "").trim(), from);
}

/** Records that a person trusts the current content of the files. A changed file is untrusted again. */
export async function trustProject(home: string, project: string): Promise<string[]> {
  const names = await listProjectFiles(project, PROJECT_FOLDER, ".md");
  const trusted = { ...(await readTrusted(home)) };
  for (const name of names) {
    trusted[await realKey(project, name)] = hashOf(await projectText(project, name));
  }
  await writeFile(join(home, "trusted.json"), `${JSON.stringify(trusted, null, 2)}\n`, { mode: 0o600 });
  return names.map((name) => join(project, PROJECT_FOLDER, name));
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

async function filesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
  const files = names.filter((name) => name.endsWith(".md"));
  return files.toSorted().map((name) => join(folder, name));
}

/**
 * Returns the key of a file in `trusted.json`. Resolves links only in the folder's path, because a file that
 * is itself a link is never read.
 */
async function realKey(project: string, name: string): Promise<string> {
  return join(await realpath(join(project, PROJECT_FOLDER)), name);
}

async function readTrusted(home: string): Promise<Record<string, string>> {
  const text = await readFile(join(home, "trusted.json"), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw error;
  });
  return JSON.parse(text) as Record<string, string>;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function lineOf(head: string, key: string): number {
  const at = head.split("\n").findIndex((line) => line.trimStart().startsWith(`${key}:`));
  return at === -1 ? 2 : at + 2;
}

function problem(file: string, line: number, text: string): ConfigError {
  return new ConfigError([problemIn(file, text, line)]);
}
