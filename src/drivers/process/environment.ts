import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { MARKER } from "../../system/process.ts";

export interface AgentEnvironment {
  readonly leaseId: string;
  /** Names that the agent's configuration lets through beside the usual ones; `NAME_*` means all that begin so. */
  readonly names: readonly string[];
  /** What Kinfold itself tells this agent. */
  readonly extra?: Readonly<Record<string, string>>;
}

/**
 * What an agent may see of our environment: a short list, never all of it. Our own variables
 * stay behind whatever the configuration names, because they may hold a person's token.
 */
export function agentEnvironment(
  source: NodeJS.ProcessEnv,
  request: AgentEnvironment,
): Record<string, string> {
  const allowed = new Set(request.names);
  const prefixes = request.names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(source)) {
    if (value === undefined || name.startsWith("KINFOLD_")) continue;
    const isNamed = allowed.has(name) || prefixes.some((prefix) => prefix !== "" && name.startsWith(prefix));
    if (isUsual(name) || isNamed) environment[name] = value;
  }
  return { ...environment, ...request.extra, [MARKER]: request.leaseId };
}

/**
 * The absolute path that `command` names on this `PATH`, or null where there is none to execute.
 * Nothing relative counts: a cloned folder must not be able to bring its own agent along.
 */
export function findCommand(command: string, path: string | undefined): string | null {
  if (command.includes("/")) return isAbsolute(command) && isExecutable(command) ? command : null;
  for (const folder of (path ?? "").split(delimiter)) {
    const candidate = join(folder, command);
    if (isAbsolute(folder) && isExecutable(candidate)) return candidate;
  }
  return null;
}

const USUAL = new Set(["PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "SHELL", "TZ"]);

function isUsual(name: string): boolean {
  return USUAL.has(name) || name.startsWith("LC_") || name.startsWith("XDG_");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
