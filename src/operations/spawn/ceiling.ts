import type { Effective, Limits, Permission, Profile } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { lowered } from "../../domain/limit.ts";
import { atMost, type Ceiling, isLooser, strictest } from "../../domain/permission.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { isInside } from "../../system/folder.ts";
import type { OperationDeps, ProjectCeiling } from "../deps.ts";
import type { Under } from "./folder.ts";

interface Asked extends Under {
  readonly asked: Permission | undefined;
  readonly profile: Profile;
  readonly cwd: string;
  readonly project: ProjectCeiling;
}

/** The ceilings of the project that a folder is in. A file that cannot be understood is never passed over. */
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

/** The mode that was asked for, the profile's or the one that holds anyway; never above a ceiling. */
export function decidePermission(deps: OperationDeps, of: Asked): Permission {
  const ceiling = strictest(ceilingsOf(of));
  const start = of.parent === null ? deps.config.permission : (ceiling?.mode ?? deps.config.permission);
  const fallback = ceiling !== null && isLooser(start, ceiling.mode) ? ceiling.mode : start;
  // A profile can only narrow: where it would widen, what held before holds.
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

/** What a parent may do unasked in its own folder says nothing about another one. */
function ceilingIn(cwd: string, parent: SessionRecord | null): Permission | undefined {
  const own = parent?.effective.permission;
  return own === "workspace" && parent !== null && !isInside(cwd, parent.cwd) ? "ask" : own;
}

/** What the project's files lower for a session in this folder, and what was lowered for its parent. */
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
