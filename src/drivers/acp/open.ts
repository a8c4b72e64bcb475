import type {
  LoadSessionResponse,
  NewSessionRequest,
  NewSessionResponse,
} from "@agentclientprotocol/sdk/unstable";
import { setTimeout as pause } from "node:timers/promises";
import type { Agent, Steer } from "../../contract/index.ts";
import { CONTRACT_VERSION } from "../../contract/version.ts";
import type { OpenFailure, OpenRequest, OpenResult } from "../port.ts";
import { within } from "../process/handle.ts";
import { type AgentConnection, connect } from "./agent-connection.ts";
import { type Dialect, plainServers } from "./dialect.ts";
import type { AcpOptions } from "./driver.ts";
import { describeError, describeExit, reportsNoSession } from "./failure.ts";
import { AcpHandle } from "./handle.ts";
import { selectMode, selectModel } from "./settings.ts";
import { fieldsOf, isFields } from "../../text/fields.ts";

/** What `initialize` reported. A probe starts no agent, so this is known only after the first start. */
export type Learned = { -readonly [K in "version" | "steer" | "load" | "fork"]?: Agent[K] };

interface Opening {
  readonly options: AcpOptions;
  readonly dialect: Dialect;
  readonly learned: Learned;
  readonly request: OpenRequest;
}

interface Opened {
  readonly result: OpenResult;
  /** The agent did not answer the request to load its session; the caller may retry. */
  readonly isUnanswered: boolean;
}

export type OpenedSession = (NewSessionResponse | LoadSessionResponse) & { readonly sessionId: string };

/** Starts an agent's process and opens or loads its session. */
export async function openOnce(opening: Opening): Promise<Opened> {
  const { options, dialect, request } = opening;
  const launch = dialect.launch?.(request) ?? { ok: true, command: options.command, env: options.extraEnv };
  if (!launch.ok) return failed("not_installed", launch.problem);
  const { command, env: extraEnv } = launch;
  const started = await options.host.start({ ...request, command, env: options.env, extraEnv });
  if (!started.ok) return { result: started, isUnanswered: false };
  const onRequest = answering(request, dialect.answers?.[request.permission]);
  const connection = await connect(started.process, dialect, { onUpdate: request.onUpdate, onRequest });
  const opened = await openInTime(connection, opening);
  if (!opened.result.ok) {
    await started.process.stop();
    connection.rpc.close();
  }
  return opened;
}

function answering(request: OpenRequest, fixed: "allow" | "deny" | undefined): OpenRequest["onRequest"] {
  return async (asked) => {
    if (fixed === undefined || asked.kind !== "permission" || asked.ours) return request.onRequest(asked);
    if (fixed === "allow") return { kind: "allow" };
    // The request is denied in any case. The caller still gets it, so that the receipt records the denial.
    await request.onRequest(asked);
    return { kind: "deny" };
  };
}

/** Opens a new or an earlier session of the agent, sets its mode and selects its model. Never rejects. */
async function openInTime(connection: AgentConnection, opening: Opening): Promise<Opened> {
  const { startMs, load } = opening.request;
  const waitMs = load === null ? 0 : (opening.dialect.load?.waitMaxMs ?? 0);
  const handshake = openSession(connection, opening);
  if (await within(handshake, startMs + waitMs)) return handshake;
  return failed("timeout", `the agent did not answer within ${startMs} ms of its start`);
}

async function openSession(connection: AgentConnection, opening: Opening): Promise<Opened> {
  const { request, dialect } = opening;
  let stage: OpenFailure = "protocol";
  try {
    const answer = await initialize(connection);
    if (!isFields(answer)) return failed("protocol", "the agent's answer to initialize is not an object");
    const steer = steerOf(answer, dialect);
    learn(opening.learned, answer, steer);
    if (request.load !== null && answer.agentCapabilities?.loadSession !== true) {
      return failed("no_load", "this agent cannot load an earlier session");
    }
    const isFork = request.load === null && typeof request.fork === "string";
    if (isFork && !opening.learned.fork)
      return failed("fork_failed", "this agent cannot fork a conversation");
    if (request.load !== null) stage = "load_failed";
    if (isFork) stage = "fork_failed";
    const session = await newOrLoaded(connection, opening);
    if (session === null) {
      return {
        ...failed("load_failed", "the agent did not answer the request to load its session"),
        isUnanswered: true,
      };
    }
    const replay = await connection.replay();
    stage = "protocol";
    const problem = await selectMode(connection, session, dialect.modes?.[request.permission] ?? []);
    if (problem !== null) return failed("protocol", problem);
    const own = opening.options.model ?? null;
    const choice = await selectModel(connection, session, { model: request.model ?? own, own });
    if (!choice.ok) return failed("protocol", choice.problem);
    const handle = new AcpHandle({
      connection,
      agentSessionId: session.sessionId,
      agentVersion: dialect.version?.() ?? answer.agentInfo?.version ?? null,
      model: choice.model,
      replay,
      steer,
      countsLastCall: dialect.countsLastCall === true,
    });
    return { result: { ok: true, handle }, isUnanswered: false };
  } catch (error) {
    return openProblem(connection, error, stage);
  }
}

async function openProblem(connection: AgentConnection, error: unknown, stage: OpenFailure): Promise<Opened> {
  if (!connection.rpc.signal.aborted) {
    const isAuth = fieldsOf(error)["code"] === AUTH_REQUIRED;
    const failure = stage === "load_failed" && reportsNoSession(error) ? "no_session" : stage;
    return failed(isAuth ? "not_signed_in" : failure, describeError(error));
  }
  const exit = await connection.ended();
  const problem = connection.problem();
  return problem === null
    ? failed("exited", describeExit(exit))
    : failed("protocol", `the agent was ended: ${problem}`);
}

const AUTH_REQUIRED = -32000;

type Initialized = Awaited<ReturnType<typeof initialize>>;

function initialize(connection: AgentConnection) {
  return connection.rpc.agent.request("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "kinfold", title: "Kinfold", version: CONTRACT_VERSION },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      elicitation: { form: {} },
      session: { compaction: {} },
    },
  });
}

function steerOf(answer: Initialized, dialect: Dialect): Steer {
  const { supported } = fieldsOf(answer["_meta"]?.["steering"]);
  return supported === true ? "inject" : (dialect.secondPrompt ?? "none");
}

function learn(learned: Learned, answer: Initialized, steer: Steer): void {
  learned.version = answer.agentInfo?.version ?? null;
  learned.steer = steer;
  learned.load = answer.agentCapabilities?.loadSession === true;
  learned.fork = Boolean(answer.agentCapabilities?.sessionCapabilities?.fork);
}

/** Null if a load gets no answer in time. Drops a fork's replay: it only repeats the original session. */
async function newOrLoaded(connection: AgentConnection, opening: Opening): Promise<OpenedSession | null> {
  const { request, dialect } = opening;
  const meta = dialect.meta?.(request);
  const params = {
    cwd: request.cwd,
    mcpServers: dialect.servers?.(request) ?? plainServers(request),
    ...(meta === undefined ? {} : { _meta: meta }),
  };
  if (request.load === null) {
    const session: unknown = await newOrForked(connection, params, request.fork ?? null);
    const id = fieldsOf(session)["sessionId"];
    if (typeof id !== "string") throw new Error("the agent opened a session without a session id");
    connection.listenTo(id);
    return session as OpenedSession;
  }
  const sessionId = request.load;
  await untilLoadable(connection, dialect.load?.waitMs?.(sessionId, request.cwd) ?? 0);
  connection.updates.startReplay();
  connection.listenTo(sessionId);
  const loading = connection.rpc.agent.request("session/load", { ...params, sessionId });
  const limitMs = dialect.load?.limitMs;
  if (limitMs !== undefined && !(await within(loading, limitMs))) return null;
  return { ...(await loading), sessionId };
}

async function newOrForked(
  connection: AgentConnection,
  params: NewSessionRequest,
  fork: string | null,
): Promise<unknown> {
  if (fork === null) return connection.rpc.agent.request("session/new", params);
  connection.updates.startReplay();
  try {
    return await connection.rpc.agent.request("session/fork", { ...params, sessionId: fork });
  } finally {
    connection.updates.endReplay();
  }
}

/** Waits `waitMs`. Rejects as soon as the connection closes, so that stopping the agent is not delayed. */
async function untilLoadable(connection: AgentConnection, waitMs: number): Promise<void> {
  if (waitMs <= 0) return;
  const { signal } = connection.rpc;
  await pause(waitMs, undefined, { signal });
}

function failed(reason: OpenFailure, message: string): Opened {
  return { result: { ok: false, reason, message }, isUnanswered: false };
}
