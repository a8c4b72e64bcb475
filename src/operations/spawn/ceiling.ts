import path from "node:path";
import type {
  Agent,
  Budget,
  Effective,
  Enforcement,
  Limits,
  Permission,
  Profile,
} from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { lowered } from "../../domain/limit.ts";
import {
  type Ceiling,
  ENFORCEMENT_WORDS,
  atMost,
  enforcementOf,
  isLooser,
  isWeaker,
  mayGive,
  serverProblem,
  strictest,
  toolProblem,
  withheldFrom,
  withoutWithheld,
} from "../../domain/permission.ts";
import type { SessionRecord, Tx } from "../../store/port/store.ts";
import { folderVerdict, isInside } from "../../system/folder.ts";
import type { OperationDeps, ProjectCeiling } from "../deps.ts";
import { leftOf, limitWords } from "../../domain/budget.ts";
import { accountsOf, clockOf } from "../../kernel/budget.ts";
import { realpath, stat } from "node:fs/promises";
import { type KeyReach, isWithin } from "../access/authority.ts";

interface Asked extends Under {
  readonly asked: Permission | undefined;
  readonly profile: Profile;
  readonly cwd: string;
  readonly project: ProjectCeiling;
}

/** Returns the project's limits for a folder. Refuses if one of the project's files has an error. */
export async function projectCeiling(deps: OperationDeps, cwd: string): Promise<ProjectCeiling> {
  const project = await deps.projectCeiling(cwd);
  const [first] = project.problems;
  if (first === undefined) return project;
  const where = first.line === null ? first.where : `${first.where}:${first.line}`;
  const what = first.key === null ? first.text : `${first.key} ${first.text}`;
  throw new Refusal(
    "bad_project_file",
    `The project's own limits are not known: ${where}: ${what}. Nothing was started; the user can correct or remove that file.`,
    { where, problems: project.problems.length },
  );
}

/** Returns the requested mode, else the profile's, else the default. Refuses a mode above a ceiling. */
export function decidePermission(deps: OperationDeps, of: Asked): Permission {
  const ceiling = strictest(ceilingsOf(of));
  const start = of.parent === null ? deps.config.permission : (ceiling?.mode ?? deps.config.permission);
  const fallback = ceiling !== null && isLooser(start, ceiling.mode) ? ceiling.mode : start;
  // A profile can only narrow the permission. If its mode is wider, it is ignored.
  const own = of.profile.permission;
  const narrowed = own !== null && !isLooser(own, fallback) ? own : fallback;
  const mode = of.asked ?? narrowed;
  if (ceiling === null || !isLooser(mode, ceiling.mode)) return mode;
  const allowed = atMost(ceiling.mode);
  throw new Refusal(
    "permission_too_wide",
    `Permission "${mode}" is wider than ${ceiling.whose}. Allowed: ${allowed.join(", ")}. Leave it out to use "${fallback}".`,
    { asked: mode, allowed },
  );
}

function ceilingsOf({ parent, key, cwd, project }: Asked): Ceiling[] {
  const own = ceilingIn(cwd, parent);
  const where = parent === null || parent.effective.permission === own ? "" : ` in ${cwd}`;
  return [
    ...(own === undefined ? [] : [{ mode: own, whose: `your own, which is "${own}"${where}` }]),
    ...(key === null
      ? []
      : [
          { mode: key.ceiling, whose: `the ceiling of the API key "${key.name}", which is "${key.ceiling}"` },
        ]),
    ...(project.permission === null ? [] : [projectWord(project.permission)]),
  ];
}

function projectWord({ mode, where }: { mode: Permission; where: string }): Ceiling {
  return { mode, whose: `what this project allows, which is "${mode}" (${where})` };
}

/** A parent's mode `workspace` applies only in the parent's folder; elsewhere it counts as `ask`. */
function ceilingIn(cwd: string, parent: SessionRecord | null): Permission | undefined {
  const own = parent?.effective.permission;
  return own === "workspace" && parent !== null && !isInside(cwd, parent.cwd) ? "ask" : own;
}

/** Returns, for each count limit, the lower of the project's and the parent's, and the file that sets it. */
export function decideCounts(of: {
  project: ProjectCeiling;
  permission: Permission;
  parent: SessionRecord | null;
}): Pick<Effective, "counts" | "loweredBy"> {
  const { project, parent } = of;
  const above = parent?.effective;
  const counts = lowered({ ...above?.counts }, project.limits);
  const loweredBy: Record<string, string> = {};
  for (const key of Object.keys(counts)) {
    const name = `limits.${key}`;
    const isOwn = project.limits[key as keyof Limits] === counts[key];
    const where = isOwn ? project.where[name] : above?.loweredBy?.[name];
    if (where !== undefined) loweredBy[name] = where;
  }
  if (project.permission?.mode === of.permission) loweredBy["permission"] = project.permission.where;
  return {
    ...(Object.keys(counts).length === 0 ? {} : { counts }),
    ...(Object.keys(loweredBy).length === 0 ? {} : { loweredBy }),
  };
}

type Unit = keyof Budget;

/**
 * Returns a child's budget: at most the parent's remaining budget. Budget reserved by running turns counts as
 * remaining, because its unused part is returned. Call this under the tree's lock.
 */
export async function decideWithin(
  tx: Tx,
  parent: SessionRecord,
  child: { readonly asked: Budget; readonly limits: Budget; readonly now: number },
): Promise<Record<string, number>> {
  const accounts = await accountsOf(tx, parent);
  const unheld = accounts.map((account) => ({ ...account, reserved: { tokens: 0, usd: 0 } }));
  const clock = await clockOf(tx, parent, child.now);
  const left: Record<Unit, number | null> = {
    usd: leftOf(unheld, "usd"),
    tokens: leftOf(unheld, "tokens"),
    turns: leftOf(unheld, "turns"),
    minutes: clock === null ? null : Math.max(0, clock.leftMs) / 60_000,
  };
  for (const unit of UNITS) refuseMore(unit, child.asked[unit], left[unit]);
  const limits: Record<string, number> = { ...child.limits };
  if (left.minutes !== null) {
    const minutes = Math.min(limits["minutes"] ?? Infinity, left.minutes);
    limits["minutes"] = Math.floor(minutes * 1_000) / 1_000;
  }
  return limits;
}

const UNITS = ["usd", "tokens", "turns", "minutes"] as const satisfies readonly Unit[];

function refuseMore(unit: Unit, asked: number | undefined, left: number | null): void {
  if (left === null || (left > 0 && (asked === undefined || asked <= left))) return;
  const what =
    left > 0 && asked !== undefined
      ? `${limitWords(unit, asked)} was asked for and ${limitWords(unit, left)} is left of your budget.`
      : "nothing is left of your budget.";
  const next =
    left > 0
      ? "Ask for less, or leave the limit out to share what is left."
      : "Do this part yourself if you still can, report what is done, and tell the user; do not spawn again.";
  throw new Refusal("over_budget", `${what} ${next}`, { unit, asked: asked ?? null, left });
}

/** The parent and the API key whose limits apply to a new session; null if there is none. */
export interface Under {
  readonly parent: SessionRecord | null;
  readonly key: KeyReach | null;
}

export async function decideFolder(
  deps: OperationDeps,
  asked: string | undefined,
  under: Under,
): Promise<string> {
  const { parent } = under;
  const base = parent?.cwd ?? process.cwd();
  const folder = path.resolve(base, asked ?? base);
  // A folder that cannot be reached is refused as if it did not exist.
  const [found, real] = await Promise.all([
    stat(folder).catch(() => null),
    realpath(folder).catch(() => null),
  ]);
  if (found === null || real === null || !found.isDirectory()) {
    const what = found === null || real === null ? "does not exist" : "is not a folder";
    throw new Refusal("cwd_not_found", `The folder ${folder} ${what}. Name one that exists.`, {
      cwd: folder,
    });
  }
  const { roots } = deps.config;
  const verdict = folderVerdict(real, { roots, closed: deps.privateFolders });
  const granted = verdict === "allowed" ? outsideOf(real, under) : null;
  if (verdict === "allowed" && granted === null) return real;
  if (asked === undefined && parent === null && verdict === "closed") {
    throw new Refusal(
      "cwd_not_allowed",
      `"cwd" is missing, and sessions may not work in the daemon's own folder. Name the folder to work in.`,
      { cwd: real, roots },
    );
  }
  const allowed =
    granted?.join(", ") ?? (verdict === "closed" ? "any folder but Kinfold's own home" : roots.join(", "));
  throw new Refusal("cwd_not_allowed", `No session may work in ${real}. Allowed: ${allowed}.`, {
    cwd: real,
    roots,
  });
}

/** Returns null if the parent and the API key allow this folder, else the list of the one that does not. */
function outsideOf(real: string, { parent, key }: Under): readonly string[] | null {
  const lists = [parent?.effective.roots, key?.roots].filter((each) => each != null);
  return lists.find((each) => !isWithin(real, each)) ?? null;
}

/** Returns the folders that descendants may work in: those allowed by both the parent and the API key. */
export function rootsOf({ parent, key }: Under): Pick<Effective, "roots"> {
  const above = parent?.effective.roots ?? null;
  const own = key?.roots ?? null;
  if (above === null && own === null) return {};
  const both = [
    ...(above ?? own ?? []).filter((each) => isWithin(each, own)),
    ...(own ?? []).filter((each) => isWithin(each, above)),
  ];
  return { roots: [...new Set(both)] };
}

/**
 * Returns the requested tools, else those that the profile allows and the parent has. Refuses a requested
 * tool that the profile or the parent does not allow. If neither the request, the profile nor the parent
 * lists tools, `tools` is null: all tools are allowed except `disallowedTools`.
 */
export function decideTools(
  asked: readonly string[] | null,
  profile: Profile,
  parent: SessionRecord | null,
): Pick<Effective, "tools" | "disallowedTools" | "mcp"> {
  const above: Pick<Effective, "tools" | "disallowedTools"> = parent?.effective ?? { tools: null };
  const forbidden = [...new Set([...profile.disallowedTools, ...(above.disallowedTools ?? [])])];
  const lists = [profile.tools, above.tools].filter((each) => each !== null);
  const withheld = [...new Set([...withheldFrom(profile), ...withheldFrom(above)])];
  const isAllowed = (tool: string): boolean =>
    mayGive(tool, withheld) ?? (!forbidden.includes(tool) && lists.every((list) => list.includes(tool)));
  const missing = (asked ?? []).filter((tool) => !isAllowed(tool));
  if (missing.length > 0) {
    const all = lists[0]?.filter(isAllowed).join(", ");
    const allowed =
      all === undefined ? `all but ${[...new Set([...forbidden, ...withheld])].join(", ")}` : all || "none";
    throw new Refusal(
      "permission_too_wide",
      `You or the profile cannot give these tools: ${missing.join(", ")}. Allowed: ${allowed}. Leave tools out to use these.`,
      { asked: missing, profile: profile.name },
    );
  }
  const given = asked ?? lists[0] ?? null;
  const tools = given === null ? null : withoutWithheld(given, withheld).filter(isAllowed);
  const left = withheldFrom({ tools, disallowedTools: forbidden });
  const disallowedTools = [...forbidden, ...withheld.filter((tool) => !left.includes(tool))];
  return {
    tools,
    ...(disallowedTools.length === 0 ? {} : { disallowedTools }),
    ...decideServers(profile, parent),
  };
}

function decideServers(profile: Profile, parent: SessionRecord | null): Pick<Effective, "mcp"> {
  const lists = [profile.mcp, parent?.effective.mcp ?? null].filter((each) => each !== null);
  const [first] = lists;
  if (first === undefined) return {};
  return { mcp: first.filter((name) => lists.every((list) => list.includes(name))) };
}

/**
 * Refuses an agent that cannot be restricted at least as strongly as the parent is. A parent that is attached
 * or has full permission sets no minimum.
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
      `${found}. Agents here that can be restricted so: ${able.join(", ") || "none"}. Choose one of them, or another permission or profile.${relax}`,
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
  return `${agent.name} is restricted to "${mode}" ${ENFORCEMENT_WORDS[level]}, and you are restricted ${own}: a child is restricted no less than its parent`;
}

export async function agentsHere(deps: OperationDeps): Promise<readonly Agent[]> {
  return (await deps.store.nodes.byName(deps.config.node))?.agents ?? [];
}

export async function agentsThat(deps: OperationDeps, fits: (agent: Agent) => boolean): Promise<string[]> {
  return (await agentsHere(deps)).filter((each) => each.installed && fits(each)).map((each) => each.name);
}
