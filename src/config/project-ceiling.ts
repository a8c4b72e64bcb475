import { dirname, join } from "node:path";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import type { Limits, Permission } from "../contract/index.ts";
import { gitTop, isInside } from "../system/folder.ts";
import {
  FILE_BYTES_MAX,
  type FileBytes,
  type FileText,
  type NotRead,
  readCapped,
  refused,
  textOf,
} from "./capped-file.ts";
import { type Given, NOTHING, onlyProblem, parseConfig, type ReadFile } from "./file.ts";
import { type ConfigProblem, problemIn } from "./problem.ts";
import { settingOf } from "./setting.ts";
import { lstat, open, opendir, realpath } from "node:fs/promises";

const FILE = "kinfold.yaml";
/**
 * O_NOFOLLOW, because a link could lead anywhere. O_NONBLOCK, because opening a FIFO that has no writer would
 * otherwise block forever.
 */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The upper limits from a project's `kinfold.yaml` files. */
export interface ProjectCeiling {
  readonly permission: { readonly mode: Permission; readonly where: string } | null;
  readonly limits: Partial<Limits>;
  /** The `file:line` of each setting, such as `limits.depthMax`. */
  readonly where: Readonly<Record<string, string>>;
  /** Files or settings that cannot be read. They must not be ignored, because they may contain a limit. */
  readonly problems: readonly ConfigProblem[];
}

/**
 * Returns the folders whose files apply to this folder: from the top of its git repository down to it, or
 * only the folder itself if it is in no repository.
 */
export function projectFolders(folder: string): string[] {
  const top = gitTop(folder);
  const folders = [folder];
  for (let at = folder; top !== null && at !== top; at = dirname(at)) folders.unshift(dirname(at));
  return folders;
}

/** Reads the limits for a session in this folder. If files set different values, the strictest applies. */
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

/** Ranks a value: a number by its size, a permission from strict to loose. */
export function looseness(value: unknown): number {
  return typeof value === "number" ? value : MODES.findIndex((mode) => mode === value);
}

const MODES: readonly Permission[] = ["read-only", "ask", "workspace", "full"];

async function readProject(folder: string): Promise<ReadFile> {
  const file = join(folder, FILE);
  const read = await readProjectFile(folder, FILE);
  if (read.kind === "missing") return NOTHING;
  return read.kind === "text" ? parseConfig(file, read.text) : unusable(file, read.why);
}

/** Like `readProject`, but synchronous, for the CLI. */
export function readProjectSync(folder: string): ReadFile {
  const file = join(folder, FILE);
  let fd: number;
  try {
    fd = openSync(file, OPEN_FLAGS);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return NOTHING;
    return unusable(file, code === "ELOOP" ? "is a link" : `cannot be read: ${message}`);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return unusable(file, "is not a plain file");
    if (stat.size > FILE_BYTES_MAX) return unusable(file, "is larger than 64 KB");
    return parseConfig(file, readFileSync(fd, "utf8"));
  } finally {
    closeSync(fd);
  }
}

function unusable(where: string, why: string): ReadFile {
  return onlyProblem(problemIn(where, `${why}; a project's kinfold.yaml is a plain file of at most 64 KB`));
}

const PROJECT_FILES_MAX = 100;
/** At most this many entries of a folder are looked at. */
const ENTRIES_MAX = 1_000;

/**
 * Reads a file only if it is a plain file of at most 64 KB inside the project: no FIFO, device, socket or
 * link, and no file in a folder that links out of the project.
 */
export async function readProjectFile(project: string, path: string): Promise<FileText> {
  const read = await readProjectBytes(project, path);
  return read.kind === "bytes" ? { kind: "text", text: read.bytes.toString("utf8") } : read;
}

/** Like `readProjectFile`, but also refuses bytes that are not UTF-8. */
export async function readProjectText(project: string, path: string): Promise<FileText> {
  return textOf(await readProjectBytes(project, path));
}

async function readProjectBytes(project: string, path: string): Promise<FileBytes> {
  const file = join(project, path);
  let handle;
  try {
    handle = await open(file, OPEN_FLAGS);
  } catch (error) {
    return notOpened(error as NodeJS.ErrnoException);
  }
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) return refused("is not a plain file");
    if (!(await liesIn(project, file, stat))) return refused("is outside the project");
    return await readCapped(handle);
  } finally {
    await handle.close();
  }
}

/**
 * Returns at most 100 names with this ending, sorted. Opens no file. Returns none if the folder is a link or
 * leads out of the project.
 */
export async function listProjectFiles(project: string, folder: string, ending: string): Promise<string[]> {
  const path = join(project, folder);
  try {
    const stat = await lstat(path);
    if (!stat.isDirectory() || !(await liesIn(project, path, stat))) return [];
    const names: string[] = [];
    let entries = 0;
    for await (const { name } of await opendir(path)) {
      if (name.endsWith(ending)) names.push(name);
      entries += 1;
      if (names.length >= PROJECT_FILES_MAX || entries >= ENTRIES_MAX) break;
    }
    return names.toSorted();
  } catch (error) {
    const answer = notOpened(error as NodeJS.ErrnoException);
    if (answer.kind === "missing" || answer.kind === "refused") return [];
    throw error;
  }
}

/** True if the opened file is still the one at this path, and the path stays inside the project. */
async function liesIn(project: string, path: string, opened: { dev: number; ino: number }): Promise<boolean> {
  const [top, real] = await Promise.all([realpath(project), realpath(path)]);
  if (real === top || !isInside(real, top)) return false;
  const now = await lstat(real);
  return now.dev === opened.dev && now.ino === opened.ino;
}

function notOpened(error: NodeJS.ErrnoException): NotRead {
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
      return { kind: "missing" };
    case "ELOOP":
      return refused("is a link");
    case "ENXIO":
      return refused("is not a plain file");
    case "EACCES":
    case "EPERM":
      return refused("may not be read by this user");
    default:
      throw error;
  }
}
