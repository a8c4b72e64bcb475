import type { AgentAnswer, AgentRequest, OpenRequest, OpenResult } from "../port.ts";
import { connect } from "./agent-connection.ts";
import type { Launch } from "./dialect.ts";
import type { AcpOptions } from "./driver.ts";
import { openInTime } from "./open.ts";
import type { Learned } from "./open.ts";

/** Starts an agent's process and opens or loads its session. */
export async function openOnce(
  options: AcpOptions,
  learned: Learned,
  request: OpenRequest,
): Promise<{ result: OpenResult; isUnanswered: boolean }> {
  const { dialect = {} } = options;
  const launch = dialect.launch?.(request) ?? plainLaunch(options);
  if (!launch.ok) {
    return { result: { ok: false, reason: "not_installed", message: launch.problem }, isUnanswered: false };
  }
  const started = await options.host.start({
    command: launch.command,
    cwd: request.cwd,
    leaseId: request.leaseId,
    env: options.env,
    extraEnv: launch.env,
    admitProcess: request.admitProcess,
    onUnmarked: request.onUnmarked,
  });
  if (!started.ok) return { result: started, isUnanswered: false };
  const connection = await connect({
    process: started.process,
    onUpdate: request.onUpdate,
    onRequest: answering(request, dialect.answers?.[request.permission]),
    ownTool: dialect.ownTool,
    isNoise: dialect.isNoise,
    callUsage: dialect.callUsage,
    retrying: dialect.retrying,
    replayQuietMs: dialect.load?.replayQuietMs,
  });
  const opened = await openInTime(connection, {
    request,
    dialect,
    learned,
    defaultModel: options.model ?? null,
  });
  if (!opened.result.ok) {
    await started.process.stop();
    connection.rpc.close();
  }
  return opened;
}

function plainLaunch(options: AcpOptions): Launch {
  return { ok: true, command: options.command, env: options.extraEnv ?? {} };
}

function answering(
  request: OpenRequest,
  fixed: "allow" | "deny" | undefined,
): (asked: AgentRequest) => Promise<AgentAnswer> {
  return async (asked) => {
    if (fixed === undefined || asked.kind !== "permission" || asked.ours) return request.onRequest(asked);
    if (fixed === "allow") return { kind: "allow" };
    // The caller still gets the request, so that the receipt records the denial.
    await request.onRequest(asked);
    return { kind: "deny" };
  };
}
