import { createHash } from "node:crypto";
import { readdir, readFile, realpath, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Profile, ProfileProblem } from "../contract/index.ts";
import { type NotRead, readHomeText } from "./capped-file.ts";
import { ConfigError } from "./problem.ts";
import { type ParsedProfile, parseProfile, problemOfFile } from "./profile-text.ts";
import { listProjectFiles, readProjectText } from "./project-ceiling.ts";

const BUILT_IN = fileURLToPath(new URL("./profiles/", import.meta.url));
const PROJECT_FOLDER = join(".kinfold", "agents");
const WHAT_IT_IS = "a profile is a plain text file of at most 64 KB";

export interface ProfileSet {
  readonly profiles: readonly Profile[];
  /** A project's profile files that no person has trusted; they are not used. */
  readonly untrusted: readonly { name: string; file: string }[];
  /** Files that cannot be used. Their `names` are in no profile above: a start that names one is refused. */
  readonly problems: readonly ProfileProblem[];
}

/**
 * Loads the built-in profiles, then the home's, then the project's trusted ones. A later profile replaces an
 * earlier one of the same name. A later file that cannot be used removes the earlier one too, because what it
 * would have narrowed is not known. Never rejects because of a file.
 */
export async function loadProfiles(places: { home: string; project: string | null }): Promise<ProfileSet> {
  const found: ParsedProfile[] = [];
  for (const file of await builtInFiles()) found.push(await readOwn(file, "built in"));
  found.push(...(await readHomeProfiles(join(places.home, "profiles"), found)));
  const { untrusted, trusted } =
    places.project === null
      ? { untrusted: [], trusted: [] }
      : await readProjectProfiles(places.home, places.project);
  return { ...resolve([...found, ...trusted]), untrusted };
}

function resolve(found: readonly ParsedProfile[]): Pick<ProfileSet, "profiles" | "problems"> {
  const byName = new Map<string, ParsedProfile>();
  for (const each of found) {
    for (const name of "profile" in each ? [each.profile.name] : each.problem.names) byName.set(name, each);
  }
  const profiles = [...byName.values()].flatMap((each) => ("profile" in each ? [each.profile] : []));
  const problems = found.flatMap((each) => {
    if ("profile" in each) return [];
    return [{ ...each.problem, names: each.problem.names.filter((name) => byName.get(name) === each) }];
  });
  return { profiles, problems };
}

async function builtInFiles(): Promise<string[]> {
  return profileFiles(BUILT_IN, await readdir(BUILT_IN));
}

/** If the folder cannot be listed, any profile might be replaced in it, so none from below it is used. */
async function readHomeProfiles(folder: string, below: readonly ParsedProfile[]): Promise<ParsedProfile[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    const hidden = below.flatMap((each) => ("profile" in each ? [each.profile.name] : []));
    const text = `the folder cannot be read: ${message}`;
    return [{ problem: { names: hidden, file: folder, line: null, text } }];
  }
  const found: ParsedProfile[] = [];
  for (const file of profileFiles(folder, names)) {
    const read = await readHomeText(file);
    if (read.kind === "text") found.push(parseProfile(file, read.text, file));
    else if (read.kind === "refused") found.push(unreadable(file, read.why));
  }
  return found;
}

async function readProjectProfiles(
  home: string,
  project: string,
): Promise<{ untrusted: { name: string; file: string }[]; trusted: ParsedProfile[] }> {
  const untrusted: { name: string; file: string }[] = [];
  const trusted: ParsedProfile[] = [];
  const names = await listProjectFiles(project, PROJECT_FOLDER, ".md");
  if (names.length === 0) return { untrusted, trusted };
  const hashes = await readTrusted(home);
  for (const name of names) {
    const file = join(project, PROJECT_FOLDER, name);
    const read = await readIfTrusted(project, name, hashes);
    if (read.kind === "text") trusted.push(parseProfile(file, read.text, file));
    else if (read.kind === "refused") trusted.push(unreadable(file, read.why));
    else untrusted.push({ name: basename(name, ".md"), file });
  }
  return { untrusted, trusted };
}

/** Reads a profile file that may not be trusted yet, so that a person can decide whether to trust it. */
export async function readProjectProfile(project: string, file: string): Promise<ParsedProfile> {
  const read = await readProjectText(project, join(PROJECT_FOLDER, basename(file)));
  if (read.kind === "text") return parseProfile(file, read.text, file);
  return unreadable(file, read.kind === "missing" ? "no longer exists" : read.why);
}

/**
 * Reads a file if a person trusted this exact text. Does not open a file that was never trusted. A file that
 * was trusted and can no longer be read is refused: it would have replaced a profile of the same name.
 */
async function readIfTrusted(
  project: string,
  name: string,
  trusted: Trusted,
): Promise<{ kind: "text"; text: string } | { kind: "untrusted" } | NotRead> {
  if ("problem" in trusted) return { kind: "refused", why: `may not be used: ${trusted.problem}` };
  const hash = trusted.hashes[await realKey(project, name)];
  if (hash === undefined) return { kind: "untrusted" };
  const read = await readProjectText(project, join(PROJECT_FOLDER, name));
  return read.kind === "text" && hashOf(read.text) !== hash ? { kind: "untrusted" } : read;
}

async function readOwn(file: string, from: string): Promise<ParsedProfile> {
  const read = await readHomeText(file);
  return read.kind === "text"
    ? parseProfile(file, read.text, from)
    : unreadable(file, read.kind === "missing" ? "does not exist" : read.why);
}

function unreadable(file: string, why: string): ParsedProfile {
  return { problem: problemOfFile(file, `it ${why}; ${WHAT_IT_IS}`) };
}

/**
 * Records that a person trusts the current content of the project's usable profile files. A changed file is
 * untrusted again. A file that cannot be used stays untrusted.
 */
export async function trustProject(home: string, project: string): Promise<string[]> {
  const known = await readTrusted(home);
  if ("problem" in known)
    throw new ConfigError([{ where: home, line: null, key: null, text: known.problem }]);
  const hashes = { ...known.hashes };
  const files: string[] = [];
  for (const name of await listProjectFiles(project, PROJECT_FOLDER, ".md")) {
    const file = join(project, PROJECT_FOLDER, name);
    const read = await readProjectText(project, join(PROJECT_FOLDER, name));
    if (read.kind !== "text" || "problem" in parseProfile(file, read.text, file)) continue;
    hashes[await realKey(project, name)] = hashOf(read.text);
    files.push(file);
  }
  await writeFile(join(home, "trusted.json"), `${JSON.stringify(hashes, null, 2)}\n`, { mode: 0o600 });
  return files;
}

function profileFiles(folder: string, names: readonly string[]): string[] {
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

type Trusted = { readonly hashes: Readonly<Record<string, string>> } | { readonly problem: string };

async function readTrusted(home: string): Promise<Trusted> {
  const file = join(home, "trusted.json");
  try {
    const hashes: unknown = JSON.parse(await readFile(file, "utf8"));
    if (typeof hashes === "object" && hashes !== null) return { hashes: hashes as Record<string, string> };
    return { problem: `${file} is not a list of trusted files` };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? { hashes: {} } : { problem: `${file} cannot be read: ${message}` };
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
