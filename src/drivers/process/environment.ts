import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { MARKER } from "../../system/process.ts";

export interface AgentEnvironment {
  readonly leaseId: string;
  /** Further variables to pass on to this agent; `NAME_*` means every name with that prefix. */
  readonly names: readonly string[];
  /** Variables that Kinfold sets for this agent. */
  readonly extra?: Readonly<Record<string, string>>;
}

/**
 * Builds an agent's environment from a short list of our variables. Never passes on a `KINFOLD_*` variable,
 * even if the configuration names it, because it may contain a person's token.
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
 * Returns the absolute path of `command` on this `PATH`, or null. Ignores relative paths: a cloned repository
 * must not be able to supply its own agent.
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
