import type { Dirent } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { foldersIn, isFolder, listFolder, type Scan, newKey, statFile } from "../../lines/folder.ts";
import type { FoundSession, UserHome } from "../../port.ts";

export const FORMAT = "claude-code";

export function roots({ home, env }: UserHome): string[] {
  return [env["CLAUDE_CONFIG_DIR"] || join(home, ".claude")];
}

export interface Extra extends Readonly<Record<string, string | number | boolean | null>> {
  readonly sidecar: string | null;
  /** The root session's folder, with the files beside its transcript. */
  readonly folder: string | null;
  readonly runId: string | null;
}

/**
 * Finds every transcript below `projects`. Depending on the version, sub-agents are beside their session, in
 * one `subagents` folder, or in the session's own folder. The names of project folders are not decoded,
 * because they are ambiguous. Some hosts add one more folder level.
 */
export async function* discover(scan: Scan, only?: string): AsyncGenerator<FoundSession> {
  const all = join(scan.root, "projects");
  const projects = only === undefined || only === all ? await foldersIn(scan, all) : [only];
  for (const project of projects) yield* inProject(scan, project, NESTED_MAX);
}

/** Returns the folder of the file's project, or the folder of all projects if the path names no project. */
export function near(root: string, file: string): string | null {
  const [top, project] = relative(root, file).split(sep);
  return top === "projects" ? join(root, top, project ?? "") : null;
}

const NESTED_MAX = 1;
/** The name of a session's folder. Any other folder is a project, or does not belong to Claude Code. */
const SESSION_NAME = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/iu;
const AGENT_FILE = /^agent-(.+)\.jsonl$/u;

async function* inProject(scan: Scan, folder: string, nestedMax: number): AsyncGenerator<FoundSession> {
  const entries = await listFolder(scan, folder);
  const names = new Set(entries.map(({ name }) => name));
  const transcripts = entries.filter(({ name }) => name.endsWith(".jsonl"));
  yield* allOf(transcripts.map(({ name }) => fileIn(scan, folder, name)));
  for (const entry of entries) {
    if (!(await isFolder(folder, entry))) continue;
    const path = join(folder, entry.name);
    if (entry.name === "subagents") yield* inSubagents(scan, path, null);
    else if (names.has(`${entry.name}.jsonl`) || SESSION_NAME.test(entry.name)) {
      yield* inSubagents(scan, join(path, "subagents"), { id: entry.name, folder: path });
    } else if (nestedMax > 0) yield* inProject(scan, path, nestedMax - 1);
  }
}

interface Owner {
  readonly id: string;
  readonly folder: string;
}

/** Sub-agents of every depth are in the same folder. Those of a workflow are in a subfolder for each run. */
async function* inSubagents(scan: Scan, folder: string, owner: Owner | null): AsyncGenerator<FoundSession> {
  const entries = await listFolder(scan, folder);
  yield* allOf(agentsIn(scan, { folder, entries, owner, runId: null }));
  if (!entries.some(({ name }) => name === "workflows")) return;
  for (const run of await foldersIn(scan, join(folder, "workflows"))) {
    const inRun = { folder: run, entries: await listFolder(scan, run), owner, runId: basename(run) };
    yield* allOf(agentsIn(scan, inRun));
  }
}

interface AgentFolder {
  readonly folder: string;
  readonly entries: readonly Dirent[];
  readonly owner: Owner | null;
  readonly runId: string | null;
}

function agentsIn(
  scan: Scan,
  { folder, entries, owner, runId }: AgentFolder,
): Promise<FoundSession | null>[] {
  return entries.flatMap(({ name }) => {
    const id = AGENT_FILE.exec(name)?.[1];
    return id === undefined ? [] : [agentFile(scan, { path: join(folder, name), id, owner, runId })];
  });
}

function fileIn(scan: Scan, folder: string, name: string): Promise<FoundSession | null> {
  const path = join(folder, name);
  const agentId = AGENT_FILE.exec(name)?.[1];
  if (agentId !== undefined) return agentFile(scan, { path, id: agentId, owner: null, runId: null });
  const id = name.slice(0, -".jsonl".length);
  const extra: Extra = { sidecar: null, folder: join(folder, id), runId: null };
  const key = newKey(scan, id, path);
  return found(scan, { path, id, key, rootKey: key, isSubagent: false, extra });
}

function agentFile(
  scan: Scan,
  { path, id, owner, runId }: { path: string; id: string; owner: Owner | null; runId: string | null },
): Promise<FoundSession | null> {
  const sidecar = `${path.slice(0, -".jsonl".length)}.meta.json`;
  const extra: Extra = { sidecar, folder: owner?.folder ?? null, runId };
  // Outside a session's folder the owner is unknown. Ids may repeat there, so the folder's path is added.
  const inside = owner?.id ?? relative(scan.root, dirname(path));
  const key = newKey(scan, [inside, ...(runId === null ? [] : [runId]), id].join("/"), path);
  const rootKey = owner === null ? null : `${FORMAT}:${owner.id}`;
  return found(scan, { path, id, key, rootKey, isSubagent: true, extra });
}

async function found(
  scan: Scan,
  session: Pick<FoundSession, "path" | "id" | "key" | "rootKey" | "isSubagent"> & { extra: Extra },
): Promise<FoundSession | null> {
  const file = await statFile(scan, session.path);
  if (file === null) return null;
  return {
    ...session,
    format: FORMAT,
    root: scan.root,
    sizeBytes: file.size,
    changedAt: file.mtimeMs,
    stamp: [file.ino, file.size, file.mtimeMs, ...(await stampsBeside(session.extra))].join(":"),
  };
}

/**
 * Returns the stamps of the files beside a transcript. A sidecar is rewritten when its sub-agent finishes,
 * and a run's journal grows while the run continues.
 */
async function stampsBeside({ sidecar, folder, runId }: Extra): Promise<string[]> {
  const paths = [sidecar, ...(runId === null || folder === null ? [] : runFiles(folder, runId))];
  // Any of these files may be missing, or may vanish at any time.
  const stats = paths.map((path) => (path === null ? null : stat(path).catch(() => null)));
  return (await Promise.all(stats)).map((file) => (file === null ? "" : `${file.size}/${file.mtimeMs}`));
}

/** A workflow writes its journal while it runs, and its snapshot when it is over. */
export function runFiles(folder: string, runId: string): [journal: string, snapshot: string] {
  return [
    join(folder, "subagents/workflows", runId, "journal.jsonl"),
    join(folder, "workflows", `${runId}.json`),
  ];
}

async function* allOf(sessions: readonly Promise<FoundSession | null>[]): AsyncGenerator<FoundSession> {
  for (const session of await Promise.all(sessions)) if (session !== null) yield session;
}
