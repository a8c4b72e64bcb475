import type {
  Agent,
  Budget,
  CallbackConfig,
  CallbackPatch,
  Effective,
  InputOf,
  Limits,
  Profile,
  ProfileProblem,
} from "../../contract/index.ts";
import { fileAndLine } from "../../contract/profile.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import { meterProblem } from "../../domain/budget.ts";
import { checkTemplate } from "../../domain/callback.ts";
import { lowered } from "../../domain/limit.ts";
import { hashOf } from "../../system/id.ts";
import { NEW_SESSION } from "../../store/port/new-session.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { folderIdentity } from "../../system/folder.ts";
import { decideInherit } from "./inherit.ts";
import type { OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import {
  agentsHere,
  decideCounts,
  decideEnforcement,
  decideFolder,
  decidePermission,
  decideTools,
  projectCeiling,
  rootsOf,
  type Under,
} from "./ceiling.ts";
import { byNearness } from "../../text/nearest.ts";
import { excerpt } from "../../secrets/redact.ts";

/** Settings for a root or a child, as the contract parsed them. */
export type StartInput = Omit<InputOf<"spawn">, "id">;

export interface Start {
  readonly effective: Effective;
  readonly callback: CallbackConfig;
  /** Hash of all that defines this start. A reused idempotency key must come with the same hash. */
  readonly inputHash: string;
  /** Instructions besides the task; sent with the first prompt. */
  readonly instructions: string | null;
}

/** Decides the effective settings of a start, or refuses it. Changes no state. */
export async function decideStart(deps: OperationDeps, input: StartInput, under: Under): Promise<Start> {
  const { parent } = under;
  refuseUnavailable(deps, input);
  const cwd = await decideFolder(deps, input.cwd, under);
  const project = await projectCeiling(deps, cwd);
  refusePrompt(deps, input.prompt, project.limits);
  const profile = await findProfile(deps, input.profile ?? "default", cwd);
  const agent = await findAgent(deps, input.agent ?? profile.agent ?? (await agentOf(deps, parent)));
  const permission = decidePermission(deps, { ...under, asked: input.permission, profile, cwd, project });
  const callback = await decideCallback(deps, { asked: input.callback, profile, parent });
  const sameAgent = parent !== null && parent.agent === agent.name;
  const applied: Effective = {
    agent: agent.name,
    agentVersion: agent.version,
    model: input.model ?? profile.model ?? (sameAgent ? parent.model : null) ?? agent.defaultModel,
    profile: profile.name,
    permission,
    ...decideTools(input.tools ?? null, profile, parent),
    limits: decideBudget(input.limits ?? {}, profile, parent),
    node: deps.config.node,
    cwd,
    folder: folderIdentity(cwd),
    ...rootsOf(under),
    ...decideCounts({ project, permission, parent }),
    workspace: "shared",
    inherit: await decideInherit(deps, { asked: input.inherit, profile, parent, agent }),
  };
  refuseUnknownModel(agent, applied.model);
  refuseUnmetered(deps, agent, applied);
  const held = await decideEnforcement(deps, agent, { effective: applied, parent });
  const effective = { ...applied, ...held };
  const instructions = [profile.name === "default" ? null : profile.instructions, input.instructions ?? null];
  // The hash must be the same whether the parent is named by its id, short id or name.
  const named = { key: undefined, id: parent?.id, cwd, agent: agent.name };
  const inputHash = hashOf(JSON.stringify({ ...input, ...named }));
  const said = instructions.filter((each) => each !== null && each !== "").join("\n\n");
  return { effective, callback, inputHash, instructions: said === "" ? null : said };
}

export function refusePrompt(deps: OperationDeps, prompt: string, counts?: Partial<Limits>): void {
  if (prompt.trim() === "") {
    throw new Refusal("empty_prompt", "The prompt is empty. Say what to do, where, and what to report.");
  }
  const bytes = Buffer.byteLength(prompt);
  const { promptBytesMax: max } = lowered(deps.config.limits, counts);
  if (bytes <= max) return;
  throw new Refusal(
    "prompt_too_large",
    `The prompt has ${bytes} bytes; the limit is ${max}. Put the material into a file and name its path.`,
    { bytes, max },
  );
}

export function newSession(
  id: string,
  input: StartInput,
  more: {
    start: Start;
    parent: SessionRecord | null;
    source: SessionRecord["source"];
    scope: string;
    onParentEnd: "cancel" | "detach";
    keys: Pick<SessionRecord, "key" | "keyCaller" | "keyHash">;
    now: number;
  },
): SessionRecord {
  const { start, parent, now } = more;
  return {
    ...NEW_SESSION,
    id,
    rootId: parent?.rootId ?? id,
    parentId: parent?.id ?? null,
    shortId: shortId(id),
    name: input.name ?? null,
    depth: parent === null ? 0 : parent.depth + 1,
    spawnConfig: { ...input, prompt: excerpt(input.prompt, 400) },
    effective: start.effective,
    title: input.title ?? titleOf(input.prompt),
    agent: start.effective.agent,
    profile: start.effective.profile,
    model: start.effective.model,
    cwd: start.effective.cwd,
    node: start.effective.node,
    origin: "managed",
    source: more.source,
    scope: more.scope,
    callback: start.callback,
    onParentEnd: more.onParentEnd,
    evidence: { state: "queued", reason: "accepted, not started yet", confidence: "certain", at: now },
    createdAt: now,
    updatedAt: now,
    lastActivityAt: now,
    ...more.keys,
  };
}

export function keyOwner(caller: CallerContext): string {
  return `${caller.kind}:${caller.id}`;
}

export function refuseReusedKey(key: string): never {
  throw new Refusal(
    "key_reused",
    `The key "${key}" was used before with another input. Send the same input again, or choose another key.`,
    { key },
  );
}

function titleOf(prompt: string): string {
  return excerpt(prompt.trim(), 80).split("\n", 1)[0] ?? "";
}

/** Refuses requested features that this version does not have. Ignores none of them silently. */
function refuseUnavailable(deps: OperationDeps, input: StartInput): void {
  const wanted = [
    input.workspace === "clone" ? 'workspace "clone" (use "shared")' : null,
    input.check === undefined ? null : "check (ask for it in the prompt)",
    input.node === undefined || input.node === deps.config.node
      ? null
      : `node "${input.node}" (leave it out)`,
  ].filter((each) => each !== null);
  if (wanted.length === 0) return;
  throw new Refusal(
    "not_available",
    `Not available in this version: ${wanted.join("; ")}. Nothing was started.`,
    { wanted },
  );
}

async function findProfile(deps: OperationDeps, name: string, cwd: string): Promise<Profile> {
  const { profiles, untrusted, problems } = await deps.profiles(cwd);
  const found = profiles.find((each) => each.name === name);
  if (found !== undefined) return found;
  const blocked = untrusted.find((each) => each.name === name);
  if (blocked !== undefined) {
    throw new Refusal(
      "untrusted_project",
      `The profile "${name}" is a file of this project (${blocked.file}) that nobody has trusted yet. The user can: kinfold profiles trust ${cwd}`,
      { file: blocked.file },
    );
  }
  const known = profiles.map((each) => each.name);
  refuseBadProfile(name, { problems, known });
  throw new Refusal(
    "unknown_profile",
    `There is no profile "${name}". Allowed: ${known.join(", ")}. Leave it out, or put the instructions into the prompt.`,
    { profile: name, known },
  );
}

/** Refuses a profile whose file has an error. */
export function refuseBadProfile(
  name: string,
  { problems, known }: { problems: readonly ProfileProblem[]; known: readonly string[] },
): void {
  const problem = problems.find(({ names }) => names.includes(name));
  if (problem === undefined) return;
  const others = known.length === 0 ? "" : `, or name another profile: ${known.join(", ")}`;
  throw new Refusal(
    "bad_profile",
    `The profile "${name}" cannot be used: ${fileAndLine(problem)}: ${problem.text}. Nothing was done. The user can correct or remove that file${others}.`,
    { profile: name, file: problem.file, line: problem.line, known },
  );
}

/** A child gets its parent's agent. If we cannot run an attached parent's agent, it gets the default. */
async function agentOf(deps: OperationDeps, parent: SessionRecord | null): Promise<string> {
  if (parent === null) return deps.config.agent;
  if (parent.origin !== "attached") return parent.agent;
  const known = await agentsHere(deps);
  return known.some((each) => each.name === parent.agent) ? parent.agent : deps.config.agent;
}

async function findAgent(deps: OperationDeps, name: string): Promise<Agent> {
  const known = await agentsHere(deps);
  const isWell = known.some((each) => each.name === name && each.problem === null);
  // Detect the agents again, because this agent may have been installed since the last detection.
  if (!isWell) await deps.store.probe();
  const agents = isWell ? known : await agentsHere(deps);
  const agent = agents.find((each) => each.name === name);
  const installed = agents.filter((each) => each.installed).map((each) => each.name);
  if (agent === undefined) {
    throw new Refusal(
      "unknown_agent",
      `No agent "${name}" is known. Installed: ${installed.join(", ") || "none"}. Any agent that speaks ACP can be added under "agents" in kinfold.yaml.`,
      { agent: name, installed },
    );
  }
  if (!agent.installed) {
    throw new Refusal(
      "agent_not_installed",
      `The agent "${name}" is not installed: ${agent.problem ?? "its program was not found"}. Install it: ${agent.howToInstall ?? "see its own documentation"}. Installed: ${installed.join(", ") || "none"}.`,
      { agent: name, howToInstall: agent.howToInstall, installed },
    );
  }
  return agent;
}

/** Checks only agents whose models are known; others report an unknown model when they start. */
function refuseUnknownModel(agent: Agent, model: string | null): void {
  const { models, defaultModel } = agent;
  if (model === null || models.length === 0 || models.includes(model) || model === defaultModel) return;
  const known = byNearness(model, models);
  throw new Refusal(
    "unknown_model",
    `"${agent.name}" has no model "${model}". Allowed: ${known.join(", ")}. Leave it out to use ${defaultModel ?? "its own"}.`,
    { agent: agent.name, model, known },
  );
}

/** Returns, for each unit, the smallest of the requested, the profile's and the parent's limit. */
function decideBudget(asked: Budget, profile: Profile, parent: SessionRecord | null): Record<string, number> {
  const turns = profile.maxTurns === null ? {} : { turns: profile.maxTurns };
  const sources: Budget[] = [asked, turns, profile.limits, (parent?.effective.limits ?? {}) as Budget];
  const keys = ["usd", "tokens", "turns", "minutes"] as const;
  const least = keys.map((key) => [key, Math.min(...sources.map((each) => each[key] ?? Infinity))] as const);
  return Object.fromEntries(least.filter(([, value]) => value !== Infinity));
}

/** A budget that cannot be metered is refused before anything is started. */
export function refuseUnmetered(deps: OperationDeps, agent: Agent, effective: Effective): void {
  const { model, limits } = effective;
  const hasPrice = model !== null && Object.hasOwn(deps.config.prices, model);
  const problem = meterProblem(limits, { name: agent.name, cost: agent.cost, model }, hasPrice);
  if (problem !== null) throw new Refusal("cannot_meter", problem, { agent: agent.name, model, limits });
}

async function decideCallback(
  deps: OperationDeps,
  of: { asked: boolean | CallbackPatch | undefined; profile: Profile; parent: SessionRecord | null },
): Promise<CallbackConfig> {
  const { asked, profile, parent } = of;
  const inherited = parent?.callback ?? (await defaultCallback(deps.config.callback));
  const patch = typeof asked === "boolean" ? { enabled: asked } : (asked ?? {});
  refuseTemplate(patch.template ?? null);
  // Batching concerns the inbox of the receiving session, so it comes from the configuration and is not
  // inherited.
  const batch = deps.config.callback.batch ?? false;
  return { ...inherited, batch, ...profile.callback, ...patch };
}

/** Loads the schema with the first request, not when the daemon starts. */
async function defaultCallback(patch: CallbackPatch): Promise<CallbackConfig> {
  const schema = await import("../../contract/session.ts");
  return schema.CallbackConfig.parse(patch);
}

export function refuseTemplate(template: string | null): void {
  const problem = template === null ? null : checkTemplate(template);
  if (problem === null) return;
  throw new Refusal("bad_template", `${problem} Leave it out to use the default.`, { problem });
}
