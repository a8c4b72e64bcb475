import type { Dirent } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { readStart } from "../../lines/byte-file.ts";
import { foldersIn, listFolder, type Scan, newKey, reportForeignFile } from "../../lines/folder.ts";
import type { FoundSession, UserHome } from "../../port.ts";

export const FORMAT = "gemini";

export function roots({ home, env }: UserHome): string[] {
  return [join(env["GEMINI_CLI_HOME"] || home, ".gemini")];
}

export interface Extra extends Readonly<Record<string, string | number | boolean | null>> {
  /** Gemini CLI's folder for the project. It shows which folder the agent worked in. */
  readonly project: string;
  /** A sub-agent's parent, from the name of the folder that contains its file. */
  readonly parentId: string | null;
}

/**
 * Finds every session below `tmp/<project>/chats`. Sub-agents are in a folder named after their parent. The
 * first bytes of each file are read, because its name has only the beginning of the session's id.
 */
export async function* discover(scan: Scan): AsyncGenerator<FoundSession> {
  for (const project of await foldersIn(scan, join(scan.root, "tmp"))) yield* inProject(scan, project);
}

async function* inProject(scan: Scan, project: string): AsyncGenerator<FoundSession> {
  const chats = join(project, "chats");
  const own = await filesIn(scan, chats, { project, parentId: null });
  const folders = await foldersIn(scan, chats);
  const below = await Promise.all(
    folders.map((folder) => filesIn(scan, folder, { project, parentId: basename(folder) })),
  );
  const seen = [...own, ...below.flat()].map((one) => ({ ...one, key: newKey(scan, one.id, one.path) }));
  const byId = new Map(seen.map((one) => [one.id, one]));
  for (const one of seen) {
    const top = topOf(one, byId);
    const rootKey = top.isSubagent ? null : top.key;
    yield { ...one, format: FORMAT, root: scan.root, rootKey };
  }
}

type Seen = Omit<FoundSession, "format" | "key" | "root" | "rootKey"> & { extra: Extra };
type Keyed = Seen & { readonly key: string };

/**
 * Returns the root session by following the parents. A path does not show the root, because the folders of
 * sub-agents are side by side, whatever their depth.
 */
function topOf(one: Keyed, byId: ReadonlyMap<string, Keyed>): Keyed {
  const passed = new Set<Keyed>();
  let at = one;
  while (at.isSubagent && !passed.has(at)) {
    passed.add(at);
    at = byId.get(at.extra.parentId ?? "") ?? at;
  }
  return at;
}

async function filesIn(scan: Scan, folder: string, extra: Extra): Promise<Seen[]> {
  const isBelow = extra.parentId !== null;
  const entries = await listFolder(scan, folder);
  const names = new Set(entries.map(({ name }) => name));
  const files = entries.filter((entry) => isSession(entry, names, isBelow));
  for (const entry of entries)
    if (!isSessionName(entry.name, isBelow)) reportForeignFile(scan, folder, entry);
  const seen = await Promise.all(files.map(({ name }) => lookAt(scan, join(folder, name), extra)));
  return seen.filter((one) => one !== null);
}

/** Skips the old file of a converted session, which Gemini CLI leaves beside the file in the new format. */
function isSession({ name }: Dirent, names: ReadonlySet<string>, isBelow: boolean): boolean {
  return isSessionName(name, isBelow) && !(name.endsWith(".json") && names.has(`${name}l`));
}

function isSessionName(name: string, isBelow: boolean): boolean {
  if (name.endsWith(".jsonl")) return isBelow || name.startsWith("session-");
  return name.startsWith("session-") && name.endsWith(".json");
}

async function lookAt(scan: Scan, path: string, extra: Extra): Promise<Seen | null> {
  try {
    const file = await stat(path);
    if (!file.isFile()) throw new Error("it is not a file");
    const head = await headOf(path, `${file.ino}:${file.birthtimeMs}`);
    return {
      id: head.id ?? basename(path).replace(/^session-|\.jsonl?$/gu, ""),
      path,
      isSubagent: extra.parentId !== null || head.isSubagent,
      sizeBytes: file.size,
      changedAt: file.mtimeMs,
      stamp: [file.ino, file.size, file.mtimeMs].join(":"),
      extra,
    };
  } catch (error) {
    scan.onProblem({ format: FORMAT, path, reason: (error as Error).message });
    return null;
  }
}

interface Head {
  readonly id: string | null;
  readonly isSubagent: boolean;
}

const HEAD_BYTES = 2048;
const HEADS_MAX = 50_000;
/** A cache: the beginning of a file never changes. */
const heads = new Map<string, Head>();

async function headOf(path: string, identity: string): Promise<Head> {
  const name = `${identity} ${path}`;
  const known = heads.get(name);
  if (known !== undefined) return known;
  const { text } = await readStart(path, HEAD_BYTES);
  const line = text.slice(0, text.indexOf("\n") >>> 0);
  const id = /"sessionId"\s*:\s*"([^"\\]{1,200})"/u.exec(text)?.[1] ?? null;
  const head = { id, isSubagent: /"kind"\s*:\s*"subagent"/u.test(line) };
  if (heads.size >= HEADS_MAX) heads.clear();
  if (id !== null && text.includes("\n")) heads.set(name, head);
  return head;
}
