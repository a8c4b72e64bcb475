import type { Agent } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { loadIfValid } from "../configuration.ts";
import { bad, type Check, good, optional } from "./check.ts";
import type { Connection } from "../daemon/connection.ts";
import { cleanLine } from "../terminal/text.ts";

export async function checkAgents(call: Call, connection: Connection | null): Promise<Check[]> {
  const { probeOwnAgents } = await import("./own-agents.ts");
  const here = await probeOwnAgents(call);
  if (connection === null) return [...here.map(checkAgent), ...checkDefault(call, here)];
  const { agents } = await connection.client.agents({});
  // A daemon named by KINFOLD_URL may be on another machine, so its agents are not compared with ours.
  const isOwn = !call.env["KINFOLD_URL"];
  const checks = agents.map((agent) => {
    const seen = here.find((one) => one.name === agent.name);
    return (isOwn && seen !== undefined ? checkPlace(agent, seen) : null) ?? checkAgent(agent);
  });
  return [...checks, ...checkDefault(call, agents)];
}

function checkAgent(agent: Agent): Check {
  const name = cleanLine(agent.name);
  const version = agent.version === null ? null : cleanLine(agent.version);
  if (!agent.installed) {
    const problem = version === null ? "not installed" : `${version}: ${cleanLine(agent.problem ?? "")}`;
    return optional(name, problem, line(agent.howToInstall));
  }
  const found = version ?? "installed";
  if (agent.signedIn === false) {
    const advice = line(agent.howToSignIn) ?? `run: ${name}`;
    return optional(name, `${found}: not signed in`, advice);
  }
  if (agent.problem !== null)
    return bad(name, `${found}: ${cleanLine(agent.problem)}`, line(agent.howToInstall));
  const words = [found, agent.signedIn ? "signed in" : null, line(agent.uses)];
  return good(name, words.filter((word) => word !== null).join(", "));
}

/**
 * Reports an agent that works in this terminal but not in the daemon. The daemon has the PATH and the
 * variables of the terminal that started the daemon.
 */
function checkPlace(agent: Agent, here: Agent): Check | null {
  const name = cleanLine(agent.name);
  const advice = "run in this terminal: kinfold down && kinfold up";
  if (!agent.installed && here.installed) {
    const text = "found in this terminal, but not by the daemon, which was started with another PATH";
    return optional(name, text, advice);
  }
  if (agent.signedIn === false && here.signedIn === true) {
    const text = "signed in here, but the daemon was started without this terminal's variables";
    return optional(name, text, advice);
  }
  return null;
}

/** Checks the agent that a session gets if it names none. */
function checkDefault(call: Call, agents: readonly Agent[]): Check[] {
  const name = "default agent";
  const wanted = loadIfValid(call)?.config.agent;
  // If the configuration is invalid, there is no default to check. `checkConfig` reports that.
  if (wanted === undefined) return [];
  const agent = agents.find((one) => one.name === wanted);
  const set = "set agent in kinfold.yaml: kinfold config edit";
  if (agent === undefined) return [bad(name, `${cleanLine(wanted)} is not a known agent`, set)];
  // A problem of the default agent affects every session that names no agent, so it is reported here again,
  // with its advice.
  const { ok, text, advice: cure } = checkAgent(agent);
  if (!ok) {
    const problem = agent.installed || agent.version !== null ? text : "is not installed";
    return [bad(name, `${cleanLine(wanted)} ${problem}`, cure === null ? set : `${cure}, or ${set}`)];
  }
  const isReal = (one: Agent): boolean => one.name !== "sim" && one.installed && one.problem === null;
  const better = agent.name === "sim" ? agents.find(isReal) : undefined;
  const advice = better === undefined ? null : `to use ${cleanLine(better.name)} instead, ${set}`;
  return [good(name, cleanLine(wanted), advice)];
}

function line(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : cleanLine(text);
}
