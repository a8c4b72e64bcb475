import type { LoadSessionResponse, McpServer, NewSessionResponse } from "@agentclientprotocol/sdk/unstable";
import type { Agent } from "../../contract/index.ts";
import { CONTRACT_VERSION } from "../../contract/index.ts";
import type { Log } from "../../log.ts";
import { findCommand } from "../environment.ts";
import type { Driver, OpenFailure, OpenRequest, OpenResult } from "../port.ts";
import type { ProcessHost } from "../process.ts";
import { canSteer, connect } from "./agent-connection.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { describeError, describeExit, openFailure, within } from "./failure.ts";
import { AcpHandle } from "./handle.ts";
import { currentModel, selectModel } from "./model.ts";
import { SERVER_NAME } from "./tool-call.ts";

export interface AcpOptions {
  readonly name: string;
  readonly title: string;
  readonly command: readonly string[];
  readonly env: readonly string[];
  readonly extraEnv?: Readonly<Record<string, string>>;
  readonly model?: string | null;
  readonly howToInstall?: string | null;
  /** What is known of this agent before it has ever been started. */
  readonly known?: Partial<Agent>;
  readonly host: ProcessHost;
  readonly log: Log;
}

/** Drives any agent that speaks ACP over its standard input and output. */
export function createAcpDriver(options: AcpOptions): Driver {
  const learned: Learned = {};
  return {
    name: options.name,
    probe: async () => describeAgent(options, learned),
    async open(request) {
      const started = await options.host.start({
        command: options.command,
        cwd: request.cwd,
        leaseId: request.leaseId,
        env: options.env,
        extraEnv: options.extraEnv,
      });
      if (!started.ok) return started;
      request.onProcess(started.process.identity);
      const connection = await connect({
        process: started.process,
        onUpdate: request.onUpdate,
        onRequest: request.onRequest,
      });
      const result = await openInTime(connection, { request, options, learned });
      if (!result.ok) {
        await started.process.stop();
        connection.rpc.close();
      }
      return result;
    },
  };
}

/** What `initialize` has told; a probe starts no agent, so this is known from the first start on. */
type Learned = Partial<Pick<Agent, "version" | "steer" | "load" | "fork">>;

interface Opening {
  readonly request: OpenRequest;
  readonly options: AcpOptions;
  readonly learned: Learned;
}

function describeAgent(options: AcpOptions, learned: Learned): Agent {
  const command = options.command[0] ?? "";
  const installed = findCommand(command, process.env["PATH"]) !== null;
  return {
    name: options.name,
    title: options.title,
    version: null,
    signedIn: null,
    steer: "none",
    load: true,
    fork: false,
    cost: "tokens",
    questions: true,
    models: [],
    defaultModel: options.model ?? null,
    ...options.known,
    ...learned,
    installed,
    problem: installed ? null : `${command} was not found on the PATH`,
    howToInstall: installed ? null : (options.howToInstall ?? `install ${command} and start Kinfold again`),
  };
}

async function openInTime(connection: AgentConnection, opening: Opening): Promise<OpenResult> {
  const { startMs } = opening.request;
  const handshake = openSession(connection, opening);
  if (await within(handshake, startMs)) return handshake;
  return fail("timeout", `the agent did not answer within ${startMs} ms of its start`);
}

async function openSession(connection: AgentConnection, opening: Opening): Promise<OpenResult> {
  let stage: OpenFailure = "protocol";
  try {
    const answer = await initialize(connection);
    learn(opening.learned, answer);
    const { load } = opening.request;
    if (load !== null && answer.agentCapabilities?.loadSession !== true) {
      return fail("load_failed", "this agent cannot load an earlier session");
    }
    if (load !== null) stage = "load_failed";
    const session = await newOrLoaded(connection, opening.request);
    stage = "protocol";
    const wanted = opening.request.model ?? opening.options.model ?? null;
    const notice = await selectModel(connection, session, wanted);
    if (notice !== null) connection.updates.notice(notice);
    return {
      ok: true,
      handle: new AcpHandle({
        connection,
        agentSessionId: session.sessionId,
        agentVersion: answer.agentInfo?.version ?? null,
        model: notice === null ? (wanted ?? currentModel(session)) : currentModel(session),
        replay: connection.replay(),
        steers: canSteer(answer),
      }),
    };
  } catch (error) {
    return openProblem(connection, error, stage);
  }
}

async function openProblem(
  connection: AgentConnection,
  error: unknown,
  stage: OpenFailure,
): Promise<OpenResult> {
  if (!connection.rpc.signal.aborted) return fail(openFailure(error, stage), describeError(error));
  const exit = await connection.ended();
  const problem = connection.problem();
  return problem === null
    ? fail("exited", describeExit(exit))
    : fail("protocol", `the agent was ended: ${problem}`);
}

type Initialized = Awaited<ReturnType<typeof initialize>>;

function initialize(connection: AgentConnection) {
  return connection.rpc.agent.request("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "kinfold", title: "Kinfold", version: CONTRACT_VERSION },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      elicitation: { form: {} },
    },
  });
}

function learn(learned: Learned, answer: Initialized): void {
  learned.version = answer.agentInfo?.version ?? null;
  learned.steer = canSteer(answer) ? "inject" : "none";
  learned.load = answer.agentCapabilities?.loadSession === true;
  learned.fork = Boolean(answer.agentCapabilities?.sessionCapabilities?.fork);
}

export type OpenedSession = (NewSessionResponse | LoadSessionResponse) & { readonly sessionId: string };

async function newOrLoaded(connection: AgentConnection, request: OpenRequest): Promise<OpenedSession> {
  const params = { cwd: request.cwd, mcpServers: serversOf(request) };
  if (request.load === null) {
    const session: NewSessionResponse = await connection.rpc.agent.request("session/new", params);
    connection.listenTo(session.sessionId);
    return session;
  }
  connection.updates.startReplay();
  const sessionId = request.load;
  connection.listenTo(sessionId);
  const answer = await connection.rpc.agent.request("session/load", { ...params, sessionId });
  return { ...answer, sessionId };
}

/** The token travels inside the protocol: a command line can be read by every user of the machine. */
function serversOf(request: OpenRequest): McpServer[] {
  if (request.mcp === null) return [];
  const headers = [{ name: "Authorization", value: `Bearer ${request.mcp.token}` }];
  return [{ type: "http", name: SERVER_NAME, url: request.mcp.url, headers }];
}

function fail(reason: OpenFailure, message: string): OpenResult {
  return { ok: false, reason, message };
}
