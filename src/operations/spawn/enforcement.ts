import type { Agent, Effective, Enforcement, Permission } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import {
  ENFORCEMENT_WORDS,
  enforcementOf,
  isWeaker,
  serverProblem,
  toolProblem,
} from "../../domain/permission.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";

/**
 * A child is held to what it may do no weaker than its parent is; where the agent cannot be, it is not
 * started at all. A parent that may do everything, or is somebody's own, asks for nothing here.
 */
export async function decideEnforcement(
  deps: OperationDeps,
  agent: Agent,
  of: { effective: Effective; parent: SessionRecord | null },
): Promise<Pick<Effective, "enforcement">> {
  const { effective } = of;
  const mode = effective.permission;
  const least = leastOf(deps, of.parent);
  const problem = (each: Agent): string | null => {
    const level = enforcementOf(each, mode);
    const isHeld = level !== "none" && (least === null || !isWeaker(level, least));
    const lists = toolProblem(each, effective) ?? serverProblem(each, effective.mcp ?? null);
    return isHeld ? lists : weakness(each, mode, least);
  };
  const found = problem(agent);
  if (found !== null) {
    const able = await agentsThat(deps, (each) => problem(each) === null);
    const relax =
      least === null ? "" : " A person may settle for the mode alone with enforcement: mode in kinfold.yaml.";
    throw new Refusal(
      "cannot_enforce",
      `${found}. Agents that can be held to it here: ${able.join(", ") || "none"}. Choose one of them, or another permission or profile.${relax}`,
      { agent: agent.name, permission: mode, agents: able },
    );
  }
  const level = enforcementOf(agent, mode);
  return level === "none" ? {} : { enforcement: level };
}

function leastOf(deps: OperationDeps, parent: SessionRecord | null): Enforcement | null {
  if (parent === null || deps.config.enforcement === "mode") return null;
  return parent.effective.permission === "full" ? null : (parent.effective.enforcement ?? null);
}

function weakness(agent: Agent, mode: Permission, least: Enforcement | null): string {
  const level = enforcementOf(agent, mode);
  if (level === "none") {
    const modes = (["read-only", "ask", "workspace", "full"] as const).filter(
      (each) => enforcementOf(agent, each) !== "none",
    );
    return `${agent.name} has no mode "${mode}": it can be started with ${modes.join(" or ")}`;
  }
  const own = least === null ? "more" : ENFORCEMENT_WORDS[least];
  return `${agent.name} is held to "${mode}" ${ENFORCEMENT_WORDS[level]}, and you are held ${own}: a child is held no weaker than its parent`;
}

async function agentsThat(deps: OperationDeps, fits: (agent: Agent) => boolean): Promise<string[]> {
  const node = await deps.store.nodes.byName(deps.config.node);
  return (node?.agents ?? []).filter((each) => each.installed && fits(each)).map((each) => each.name);
}
