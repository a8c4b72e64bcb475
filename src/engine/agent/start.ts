import type { AgentAnswer, AgentHandle, AgentRequest, AgentUpdate, OpenResult } from "../../drivers/port.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { closeLease, leaseRow, type ProcessLease } from "./process-lease.ts";
import type { EngineDeps } from "../deps.ts";
import { retryWrite } from "../retry-write.ts";
import { asError } from "../../system/error.ts";
import type { ProcessIdentity } from "../../system/process.ts";
import { hasNoTools, ownToolsOf } from "../../domain/permission.ts";
import { isLoadFailure, type LoadFailure } from "../../domain/recovery.ts";
import { folderChange } from "../../system/folder.ts";

interface AgentListener {
  onUpdate(update: AgentUpdate): void;
  onRequest(request: AgentRequest): Promise<AgentAnswer>;
  /** Returns false once the slot is ending; the start is then abandoned. */
  isWanted(): boolean;
}

export type AgentStart =
  | { readonly ok: true; readonly agent: AgentHandle }
  | {
      readonly ok: false;
      /** Why the earlier conversation could not be loaded; null if something else failed. */
      readonly loadFailure: LoadFailure | null;
      /** The session was cancelled or stopped, or its lease was taken over, before the agent began. */
      readonly isUnwanted: boolean;
      readonly reason: string;
    };

/**
 * Starts an agent and, with `load`, loads the agent's earlier session. Records the process in the lease's row
 * as soon as it exists, and the agent's session id in the session's row before the first prompt. If either
 * write fails, the process is stopped.
 */
export async function startAgent(
  deps: EngineDeps,
  session: SessionRecord,
  { lease, ...listener }: AgentListener & { lease: ProcessLease; load: string | null; fork?: string | null },
): Promise<AgentStart> {
  const driver = deps.drivers.get(session.agent);
  if (driver === undefined) {
    return failed(`the agent "${session.agent}" is not known on this machine any more`);
  }
  const refusal = folderRefusal(deps, session);
  if (refusal !== null) return failed(refusal);
  const url = deps.toolsUrl();
  const row = leaseRow(deps, { session, lease, isWanted: listener.isWanted });
  const result = await driver.open({
    sessionId: session.id,
    leaseId: lease.id,
    cwd: session.cwd,
    model: session.model,
    permission: session.effective.permission,
    tools: ownToolsOf(session.effective.tools),
    notTools: ownToolsOf(session.effective.disallowedTools ?? []),
    servers: session.effective.mcp ?? null,
    mcp: url === null || hasNoTools(session.effective) ? null : { url, token: lease.token },
    load: listener.load,
    fork: listener.fork ?? null,
    startMs: deps.config.startMs,
    onUpdate: listener.onUpdate,
    onRequest: listener.onRequest,
    ...row,
  });
  if (!result.ok && result.reason === "unwanted") return UNWANTED;
  if (!result.ok) return failureOf(deps, session, result);
  const { handle } = result;
  deps.reached("agent.started");
  const started = await identify(deps, session, { lease, handle, isWanted: listener.isWanted }).catch(
    asError,
  );
  if (started instanceof Error || !started.ok) await handle.stop(0);
  if (started instanceof Error) throw started;
  return started;
}

/** Records the agent's session id and model. If this fails, the agent gets no prompt. */
async function identify(
  deps: EngineDeps,
  session: SessionRecord,
  { isWanted, ...agent }: { lease: ProcessLease; handle: AgentHandle; isWanted: () => boolean },
): Promise<AgentStart> {
  // The folder may have been swapped while the process started.
  const swapped = folderRefusal(deps, session);
  if (swapped !== null) return failed(swapped);
  if (!(await retryWrite(deps, () => noteAgent(deps, session, agent), isWanted))) return UNWANTED;
  deps.reached("agent.identified");
  return { ok: true, agent: agent.handle };
}

function failed(reason: string): AgentStart & { ok: false } {
  return { ok: false, loadFailure: null, isUnwanted: false, reason };
}

export const UNWANTED: AgentStart & { ok: false } = {
  ...failed("it was stopped before it began"),
  isUnwanted: true,
};

function failureOf(deps: EngineDeps, session: SessionRecord, result: OpenResult & { ok: false }): AgentStart {
  const { reason, message } = result;
  deps.log.warn({ sessionId: session.id, reason, message }, "agent did not start");
  if (reason === "not_signed_in") {
    const how = deps.drivers.get(session.agent)?.howToSignIn;
    const fix = how === undefined ? "only the user can fix this" : `to sign in, ${how}`;
    return failed(`not signed in to ${session.agent}; ${fix}`);
  }
  return { ...failed(message), loadFailure: isLoadFailure(reason) ? reason : null };
}

async function noteAgent(
  deps: EngineDeps,
  session: SessionRecord,
  { lease, handle }: { lease: ProcessLease; handle: AgentHandle },
): Promise<boolean> {
  const isNoted = await deps.store.write(session.rootId, lease, async (tx) => {
    const fresh = await tx.sessions.byId(session.id);
    if (fresh === null || fresh.endedAt !== null) return false;
    // The model that the agent reports wins over the requested one.
    const model = handle.model ?? session.model;
    const { agentSessionId } = handle;
    session.agentSessionId = agentSessionId;
    session.model = model;
    const effective = {
      ...fresh.effective,
      model,
      agentVersion: handle.agentVersion ?? fresh.effective.agentVersion,
    };
    await tx.sessions.patch(session.id, { agentSessionId, model, effective });
    return true;
  });
  return isNoted === true;
}

export async function giveBackLease(
  deps: EngineDeps,
  end: { session: SessionRecord; lease: ProcessLease; left: readonly ProcessIdentity[]; hasRun: boolean },
): Promise<void> {
  const { session, lease, left } = end;
  await deps.store.write(session.rootId, lease, async (tx) => {
    const at = deps.now();
    await closeLease(tx, lease, left);
    const data = { left: left.map((each) => ({ pid: each.pid, command: each.command })) };
    const names = left.map((each) => `pid ${each.pid} (${each.command})`);
    const text = left.length === 0 ? null : `could not be stopped: ${names.join(", ")}`;
    if (end.hasRun || left.length > 0)
      tx.append({ sessionId: session.id, type: "agent.exited", text, data, at });
    // The parent's callback may be waiting until these processes have ended.
    tx.wake(session.id);
  });
}

/**
 * Returns why no process may start in the session's folder, or null. Every start checks this, because a link
 * may have replaced the folder since the spawn.
 */
function folderRefusal(deps: EngineDeps, { cwd, parentId, effective }: SessionRecord): string | null {
  // A child's folder must still be the original one. A person may replace a root's folder with a new clone.
  const identity = parentId === null ? null : (effective.folder ?? null);
  const closed = deps.privateFolders;
  const problem =
    folderChange(cwd, { roots: deps.config.roots, closed, identity }) ??
    folderChange(cwd, { roots: effective.roots ?? [], closed, identity });
  if (problem === null) return null;
  return `${problem}; nothing was started there. Spawn a new session in the right folder`;
}
