import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Limits, Permission } from "../contract/index.ts";
import { gitTop } from "../system/folder.ts";
import { parseConfig, type Given, type ReadFile } from "./file.ts";
import type { ConfigProblem } from "./problem.ts";
import { PROJECT_FILE_BYTES_MAX, readProjectFile } from "./project-file.ts";
import { settingOf } from "./setting.ts";

const FILE = "kinfold.yaml";

/** What the `kinfold.yaml` files of a project allow at most, and `file:line` of each word that counts. */
export interface ProjectCeiling {
  readonly permission: { readonly mode: Permission; readonly where: string } | null;
  readonly limits: Partial<Limits>;
  /** By setting, as in `limits.depthMax`. */
  readonly where: Readonly<Record<string, string>>;
  /** What cannot be read: a ceiling that is not understood must not be passed over. */
  readonly problems: readonly ConfigProblem[];
}

/** The folders whose files hold for a session in this one: from the git top level down to it, else itself. */
export function projectFolders(folder: string): string[] {
  const top = gitTop(folder);
  const folders = [folder];
  for (let at = folder; top !== null && at !== top; at = path.dirname(at)) folders.unshift(path.dirname(at));
  return folders;
}

/** Reads the ceilings for a session in this folder. The strictest word on each setting counts. */
export async function readProjectCeiling(folder: string): Promise<ProjectCeiling> {
  const read = await Promise.all(projectFolders(folder).map((each) => readProject(each)));
  const problems = read.flatMap((each) => [...each.problems]);
  const strictest = new Map<string, Given>();
  for (const given of read.flatMap((each) => [...each.given])) {
    const setting = settingOf(given.key);
    if (setting?.project !== "narrow") continue;
    const text = setting.check(given.value);
    if (text !== null) problems.push({ where: given.where, line: given.line, key: given.key, text });
    else if (isStricter(given, strictest.get(given.key))) strictest.set(given.key, given);
  }
  return { ...ceilingOf(strictest), problems };
}

function ceilingOf(strictest: ReadonlyMap<string, Given>): Omit<ProjectCeiling, "problems"> {
  const limits: Record<string, number> = {};
  const where: Record<string, string> = {};
  for (const [key, given] of strictest) {
    where[key] = `${given.where}:${given.line ?? 1}`;
    if (key !== "permission") limits[key.slice("limits.".length)] = given.value as number;
  }
  const mode = strictest.get("permission")?.value as Permission | undefined;
  return {
    permission: mode === undefined ? null : { mode, where: where["permission"] ?? "" },
    limits: limits as Partial<Limits>,
    where,
  };
}

function isStricter(given: Given, before: Given | undefined): boolean {
  return before === undefined || looseness(given.value) < looseness(before.value);
}

/** Numbers compare as they are; permissions from strict to loose. */
export function looseness(value: unknown): number {
  return typeof value === "number" ? value : MODES.findIndex((mode) => mode === value);
}

const MODES: readonly Permission[] = ["read-only", "ask", "workspace", "full"];

async function readProject(folder: string): Promise<ReadFile> {
  const file = path.join(folder, FILE);
  const read = await readProjectFile(folder, FILE);
  if (read.kind === "missing") return NOTHING;
  return read.kind === "text" ? parseConfig(file, read.text) : refused(file, read.why);
}

/** The same for the CLI, which shows what holds and waits for nothing. */
export function readProjectSync(folder: string): ReadFile {
  const file = path.join(folder, FILE);
  let fd: number;
  try {
    // A FIFO without a writer would hold up a blocking open for ever, and a link could lead anywhere.
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return NOTHING;
    return refused(file, code === "ELOOP" ? "is a link" : `cannot be read: ${message}`);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return refused(file, "is not a plain file");
    if (stat.size > PROJECT_FILE_BYTES_MAX) return refused(file, "is larger than 64 KB");
    return parseConfig(file, readFileSync(fd, "utf8"));
  } finally {
    closeSync(fd);
  }
}

const NOTHING: ReadFile = { given: [], problems: [] };

function refused(where: string, why: string): ReadFile {
  const text = `${why}; a project's kinfold.yaml is a plain file of at most 64 KB`;
  return { given: [], problems: [{ where, line: null, key: null, text }] };
}
