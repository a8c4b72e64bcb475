import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Agent, AgentCommand } from "../../contract/index.ts";
import { agentEnvironment, findCommand } from "../process/environment.ts";
import type { Driver, Enforcement, OpenRequest } from "../port.ts";
import type { ProcessHost } from "../process/process.ts";
import { allowedTools } from "../vendors/tools.ts";
import { NETWORK } from "../vendors/vendor.ts";
import type { Versions } from "../vendors/version.ts";

export interface PiOptions {
  readonly own?: AgentCommand | undefined;
  readonly versions: Versions;
  readonly host: ProcessHost;
}

/** pi never asks for permission. It can be allowed either to read only or to do everything. */
const ENFORCES: Enforcement = { "read-only": "agent", ask: "none", workspace: "none", full: "agent" };
const TOOLS = {
  Read: ["read"],
  Edit: ["edit"],
  Write: ["write"],
  Bash: ["bash"],
  Grep: ["grep"],
  Glob: ["find"],
  LS: ["ls"],
};
const READING = ["read", "grep", "find", "ls"];
const ENV = [...NETWORK, "PI_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY", "OPENROUTER_API_KEY"];

/** Drives pi over its RPC protocol. pi cannot use our tools, so it cannot spawn children. */
export function createPiDriver(options: PiOptions): Driver {
  const env = [...ENV, ...(options.own?.env ?? [])];
  let version: string | null = null;
  return {
    name: "pi",
    async probe() {
      const agent = await describe(options, env);
      ({ version } = agent);
      return agent;
    },
    async open(request) {
      const limits = toolArguments(request);
      if (limits === null) {
        const message = `pi cannot enforce permission ${request.permission}, because it never asks; use read-only or full`;
        return { ok: false, reason: "protocol", message };
      }
      const load = request.load !== null && isKept(request.load) ? request.load : null;
      const started = await options.host.start({
        ...request,
        command: [...commandOf(options), ...limits, ...sessionArguments({ ...request, load }, options)],
        env,
      });
      if (!started.ok) return started;
      // Loaded only when the first session opens, because the daemon must start quickly.
      const { openInTime } = await import("./open.ts");
      const result = await openInTime(started.process, { request, load, version });
      if (!result.ok) await started.process.stop();
      return result;
    },
  };
}

/** Null if pi cannot enforce this mode. */
function toolArguments(request: OpenRequest): string[] | null {
  if (ENFORCES[request.permission] === "none") return null;
  const allowed = allowedTools(TOOLS, request);
  if (request.permission === "full" && allowed === null) return [];
  const left =
    request.permission === "full" ? allowed : READING.filter((tool) => allowed?.includes(tool) ?? true);
  return left === null || left.length === 0 ? ["--no-tools"] : ["--tools", left.join(",")];
}

function commandOf(options: PiOptions): readonly string[] {
  return options.own?.command ?? ["pi", "--mode", "rpc"];
}

function sessionArguments(request: OpenRequest, options: PiOptions): string[] {
  const model = request.model ?? options.own?.model ?? null;
  return [
    ...(request.load === null ? [] : ["--session", request.load]),
    ...(model === null ? [] : ["--model", model]),
  ];
}

/**
 * Whether pi has a file of this session. pi writes the file when its model first answers, before any tool
 * runs. So a session without a file has done nothing, and the driver opens a new session with an empty replay
 * in its place.
 */
function isKept(agentSessionId: string): boolean {
  const root = join(process.env["PI_CODING_AGENT_DIR"] ?? join(homedir(), ".pi", "agent"), "sessions");
  const files = existsSync(root) ? readdirSync(root, { recursive: true }) : [];
  return files.some((file) => String(file).endsWith(`_${agentSessionId}.jsonl`));
}

async function describe(options: PiOptions, env: readonly string[]): Promise<Agent> {
  const [command = ""] = commandOf(options);
  const program = findCommand(command, process.env["PATH"]);
  const isThere = program !== null;
  const seen = agentEnvironment(process.env, { leaseId: "probe", names: env });
  const howToInstall = options.own?.howToInstall ?? "npm install -g @mariozechner/pi-coding-agent";
  return {
    name: "pi",
    title: options.own?.title ?? "pi",
    installed: isThere,
    version: isThere ? await options.versions.of(program, seen) : null,
    signedIn: isThere ? isSignedIn() : null,
    problem: isThere ? null : `${command} was not found on the PATH`,
    howToInstall: isThere ? null : howToInstall,
    uses: program,
    steer: "inject",
    load: true,
    fork: false,
    cost: "usd",
    metersCalls: true,
    metersCost: true,
    questions: false,
    enforces: ENFORCES,
    tools: Object.keys(TOOLS),
    // pi does not support MCP at all, so it certainly uses no server besides the named ones.
    servers: "named",
    models: [],
    defaultModel: options.own?.model ?? null,
  };
}

/** pi also reads keys from many variables, so without this file we cannot know if a person is signed in. */
function isSignedIn(): boolean | null {
  return existsSync(join(homedir(), ".pi", "agent", "auth.json")) ? true : null;
}
