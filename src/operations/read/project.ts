import { createHash } from "node:crypto";
import path from "node:path";
import type { AgentStatus, OutputOf, Project } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { FolderCount, HistoryRecord, HistoryStatus, SessionRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { pageOfFile, pageOfStore } from "./history-page.ts";
import { isFamily, resolve } from "../access/resolve.ts";
import { viewOne } from "./view.ts";
import { callerSession } from "../access/authority.ts";
import { sees, type Visible } from "../../domain/permission.ts";

export async function projects(deps: OperationDeps, caller: CallerContext): Promise<OutputOf<"projects">> {
  callerSession(caller);
  return { projects: await projectsIn(deps, caller.visible) };
}

export const projectSession: Handler<"projectSession"> = async (deps, caller, { input }) => {
  const { project, session } = await find(deps, caller, input);
  const record = await deps.store.read.history.bySession(session.id);
  const family = await familyBelow(deps, record);
  const calls = callsOf(family.agents);
  return {
    project,
    session: await viewOne(deps, session),
    agentStatuses: Object.fromEntries(family.agents.map(({ name, status }) => [name, status])),
    calls,
    sessionIds: family.sessionIds,
    page: await (record === null
      ? pageOfStore(deps, session, input)
      : pageOfFile(deps, record, { ...input, calls })),
  };
};

export const projectAgent: Handler<"projectAgent"> = async (deps, caller, { input }) => {
  const { project, session } = await find(deps, caller, input);
  const top = await deps.store.read.history.bySession(session.id);
  const family = await familyBelow(deps, top);
  const found = family.agents.find(({ name }) => name === input.agentId);
  if (found === undefined) {
    const known = family.agents.map(({ name }) => name);
    throw new Refusal(
      "not_found",
      `Session ${session.shortId} has no sub-agent "${input.agentId}". It has: ${known.slice(0, 10).join(", ") || "none"}.`,
      { agentId: input.agentId, known: known.slice(0, 100) },
    );
  }
  const { status: agent, key } = found;
  const record = key === null ? null : await deps.store.read.history.byKey(key);
  if (record === null) {
    const problem = "This sub-agent left no file of its own.";
    return { project, session: null, agent, page: { items: [], cursor: null, problem } };
  }
  const own = await deps.store.read.sessions.byId(record.sessionId);
  const calls = callsOf(family.agents);
  return {
    project,
    session: own === null ? null : await viewOne(deps, own),
    agent,
    page: await pageOfFile(deps, record, { ...input, calls }),
  };
};

interface FamilyBelow {
  readonly agents: readonly NamedAgent[];
  readonly sessionIds: Record<string, string>;
}

interface NamedAgent {
  /** The agent's id. It gets a prefix if two agents have the same id, as in several runs of one workflow. */
  readonly name: string;
  readonly status: AgentStatus;
  /** The key of the agent's file; null if the agent left no file. */
  readonly key: string | null;
}

/** Returns every sub-agent below one session, at any depth, including those that left no file. */
async function familyBelow(deps: OperationDeps, top: HistoryRecord | null): Promise<FamilyBelow> {
  const rows = top === null ? [] : await deps.store.read.history.statusesOf(top.familyKey);
  const withFile = rows.filter((row): row is HistoryStatus & { status: AgentStatus } => row.status !== null);
  const missing = rows.flatMap((row) => row.missing ?? []);
  const all = [...withFile.map(({ status }) => status), ...missing];
  const isShown = (status: AgentStatus): boolean =>
    top === null || top.status === null || isUnder(status, top.agentId, all);
  const own = withFile.filter(({ status }) => isShown(status));
  const agents = named([
    ...own.map(({ status, key }) => ({ status, key })),
    ...missing.filter(isShown).map((status) => ({ status, key: null })),
  ]);
  const names = new Map(agents.map(({ key, name }) => [key, name]));
  return {
    agents,
    sessionIds: Object.fromEntries(
      own.flatMap(({ kind, key, sessionId }) =>
        kind === "imported" ? [[names.get(key) as string, sessionId]] : [],
      ),
    ),
  };
}

function named(agents: readonly Omit<NamedAgent, "name">[]): NamedAgent[] {
  const counts = new Map<string, number>();
  for (const { status } of agents) counts.set(status.agentId, (counts.get(status.agentId) ?? 0) + 1);
  return agents.map((agent) => {
    const { agentId, toolUseId } = agent.status;
    if (counts.get(agentId) === 1) return { ...agent, name: agentId };
    const run = agent.key?.split("/").at(-2) ?? toolUseId ?? "";
    return { ...agent, name: `${run}:${agentId}` };
  });
}

function isUnder(status: AgentStatus, agentId: string, all: readonly AgentStatus[]): boolean {
  let at: AgentStatus | undefined = status;
  for (let depth = 0; at !== undefined && depth <= all.length; depth += 1) {
    const above: string | null = at.parentAgentId;
    if (above === agentId) return true;
    at = all.find((each) => each.agentId === above);
  }
  return false;
}

function callsOf(agents: readonly NamedAgent[]): Record<string, string[]> {
  const calls: Record<string, string[]> = {};
  for (const { name, status } of agents)
    if (status.toolUseId !== null) (calls[status.toolUseId] ??= []).push(name);
  return calls;
}

async function find(
  deps: OperationDeps,
  caller: CallerContext,
  input: { projectId: string; sessionId: string },
): Promise<{ project: Project; session: SessionRecord }> {
  const self = callerSession(caller);
  const visible = caller.visible;
  const known = await projectsIn(deps, visible);
  const project = known.find(({ id, cwd }) => id === input.projectId || cwd === input.projectId);
  if (project === undefined) {
    throw new Refusal(
      "not_found",
      `No project "${input.projectId.slice(0, 80)}". GET /api/projects lists them all.`,
      { projectId: input.projectId },
    );
  }
  const byAgent = await deps.store.read.sessions.byAgentSession(null, input.sessionId);
  const own = byAgent.find(
    (each) => sees(visible, each.scope) && isFamily(self, each) && each.cwd === project.cwd,
  );
  const session = own ?? (await resolve(deps, caller, input.sessionId));
  if (session.cwd === project.cwd) return { project, session };
  throw new Refusal(
    "not_found",
    `Session ${session.shortId} does not belong to project "${project.name}": it works in ${session.cwd}.`,
    { projectId: projectId(session.cwd) },
  );
}

async function projectsIn(deps: OperationDeps, visible: Visible): Promise<Project[]> {
  const rows = await deps.store.read.history.folders(visible);
  const projects = [...Map.groupBy(rows, ({ cwd }) => cwd)].map(([cwd, counts]) => projectOf(cwd, counts));
  return projects.toSorted((a, b) => b.lastActivityAt - a.lastActivityAt);
}

function projectOf(cwd: string, counts: readonly FolderCount[]): Project {
  const project: Project = {
    id: projectId(cwd),
    cwd,
    name: path.basename(cwd) || cwd || "unknown",
    sessions: 0,
    subagents: 0,
    atWork: 0,
    agents: {},
    origins: {},
    lastActivityAt: 0,
  };
  for (const { isBelow, count, atWork, agent, origin, lastActivityAt } of counts) {
    project[isBelow ? "subagents" : "sessions"] += count;
    project.atWork += atWork;
    project.lastActivityAt = Math.max(project.lastActivityAt, lastActivityAt);
    if (isBelow) continue;
    project.agents[agent] = (project.agents[agent] ?? 0) + count;
    project.origins[origin] = (project.origins[origin] ?? 0) + count;
  }
  return project;
}

/** Returns an id that is readable in a URL and the same for the same path on every machine. */
function projectId(cwd: string): string {
  const name = path
    .basename(cwd)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 40);
  const hash = createHash("sha256").update(cwd).digest("hex").slice(0, 10);
  return name === "" ? hash : `${name}-${hash}`;
}
