import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import type {
  Agent,
  CallbackConfig,
  CallbackPatch,
  Caller,
  Effective,
  Permission,
} from "../contract/index.ts";
import { Refusal } from "../contract/refusal.ts";
import { shortId } from "../contract/short-id.ts";
import { checkTemplate } from "../domain/callback.ts";
import { atMost, isLooser } from "../domain/permission.ts";
import { hashOf } from "../kernel/id.ts";
import type { SessionRecord } from "../store/port.ts";
import type { OperationDeps } from "./deps.ts";

/** What a root and a child are started with, as the contract parsed it. */
export interface StartInput {
  readonly prompt: string;
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  readonly profile?: string | undefined;
  readonly cwd?: string | undefined;
  readonly permission?: Permission | undefined;
  readonly callback?: boolean | CallbackPatch | undefined;
  readonly onParentEnd?: "cancel" | "detach" | undefined;
  readonly key?: string | undefined;
}

export interface Start {
  readonly effective: Effective;
  readonly callback: CallbackConfig;
  /** Of everything that makes this start what it is; binds a key to its input. */
  readonly inputHash: string;
}

/** Decides what is applied for what was asked, or refuses with the next step. Touches no state. */
export async function decideStart(
  deps: OperationDeps,
  input: StartInput,
  parent: SessionRecord | null,
): Promise<Start> {
  refusePrompt(deps, input.prompt);
  refuseProfile(input.profile);
  const agent = await findAgent(deps, input.agent ?? parent?.agent ?? deps.config.agent);
  const permission = decidePermission(deps, input.permission, parent);
  const cwd = await decideFolder(deps, input.cwd, parent);
  const callback = await decideCallback(deps, input.callback, parent);
  const sameAgent = parent !== null && parent.agent === agent.name;
  const effective: Effective = {
    agent: agent.name,
    agentVersion: agent.version,
    model: input.model ?? (sameAgent ? parent.model : null) ?? agent.defaultModel,
    profile: "default",
    permission,
    tools: null,
    limits: {},
    node: deps.config.node,
    cwd,
    workspace: "shared",
    inherit: "none",
  };
  // A parent may be named by its id, its short id or its name: the input is the same.
  const named = { key: undefined, id: parent?.id, cwd, agent: agent.name };
  const inputHash = hashOf(JSON.stringify({ ...input, ...named }));
  return { effective, callback, inputHash };
}

export function refusePrompt(deps: OperationDeps, prompt: string): void {
  if (prompt.trim() === "") {
    throw new Refusal("empty_prompt", "The prompt is empty. Say what to do, where, and what to report.");
  }
  const bytes = Buffer.byteLength(prompt);
  const max = deps.config.limits.promptBytesMax;
  if (bytes <= max) return;
  throw new Refusal(
    "prompt_too_large",
    `The prompt has ${bytes} bytes and ${max} is the most. Put the material into a file and name its path.`,
    { bytes, max },
  );
}

/** The row of a session that does not exist yet. */
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
    id,
    rootId: parent?.rootId ?? id,
    parentId: parent?.id ?? null,
    shortId: shortId(id),
    name: input.name ?? null,
    depth: parent === null ? 0 : parent.depth + 1,
    detachedAt: null,
    spawnTurnId: null,
    spawnEntryIndex: null,
    spawnConfig: { ...input, prompt: input.prompt.slice(0, 400) },
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
    round: 0,
    roundOpen: false,
    roundOpenedAt: null,
    roundClosedAt: null,
    outcome: null,
    outcomeReason: null,
    held: null,
    backgroundUntil: null,
    evidence: { state: "queued", reason: "accepted, not started yet", confidence: "certain", at: now },
    agentSessionId: null,
    fence: 0,
    messageCount: 0,
    toolUseCount: 0,
    usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null },
    entryCount: 0,
    positionCount: 0,
    turnCount: 0,
    seen: false,
    createdAt: now,
    updatedAt: now,
    lastActivityAt: now,
    endedAt: null,
    endReason: null,
    endBy: null,
    endNote: null,
    ...more.keys,
    replyLostAt: null,
  };
}

export function keyOwner(caller: Caller): string {
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
  const line = prompt.trim().split("\n", 1)[0] ?? "";
  // Cut before it is spread: a prompt may be one line of megabytes.
  return Array.from(line.slice(0, 160)).slice(0, 80).join("");
}

function refuseProfile(profile: string | undefined): void {
  if (profile === undefined || profile === "default") return;
  throw new Refusal(
    "unknown_profile",
    `There is no profile "${profile}". Allowed: default. Leave it out, or put the instructions into the prompt.`,
    { profile, known: ["default"] },
  );
}

async function findAgent(deps: OperationDeps, name: string): Promise<Agent> {
  const node = await deps.store.nodes.byName(deps.config.node);
  const agents = node?.agents ?? [];
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

function decidePermission(
  deps: OperationDeps,
  asked: Permission | undefined,
  parent: SessionRecord | null,
): Permission {
  const ceiling = parent?.effective.permission;
  const mode = asked ?? ceiling ?? deps.config.permission;
  if (ceiling === undefined || !isLooser(mode, ceiling)) return mode;
  throw new Refusal(
    "permission_too_wide",
    `Permission "${mode}" is wider than your own, which is "${ceiling}". Allowed: ${atMost(ceiling).join(", ")}. Leave it out to use your own.`,
    { asked: mode, allowed: atMost(ceiling) },
  );
}

async function decideFolder(
  deps: OperationDeps,
  asked: string | undefined,
  parent: SessionRecord | null,
): Promise<string> {
  const base = parent?.cwd ?? process.cwd();
  const folder = path.resolve(base, asked ?? base);
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
  const isPrivate = deps.privateFolders.some((each) => isInside(real, each));
  const { roots } = deps.config;
  if (!isPrivate && (roots.length === 0 || roots.some((root) => isInside(real, root)))) return real;
  const allowed = isPrivate ? "any folder but Kinfold's own home" : roots.join(", ");
  throw new Refusal("cwd_not_allowed", `No session may work in ${real}. Allowed: ${allowed}.`, {
    cwd: real,
    roots,
  });
}

function isInside(folder: string, root: string): boolean {
  const relative = path.relative(root, folder);
  return relative === "" || (!relative.startsWith("..") && !path.isAbsolute(relative));
}

async function decideCallback(
  deps: OperationDeps,
  asked: boolean | CallbackPatch | undefined,
  parent: SessionRecord | null,
): Promise<CallbackConfig> {
  const inherited = parent?.callback ?? (await defaultCallback(deps.config.callback));
  const patch = typeof asked === "boolean" ? { enabled: asked } : (asked ?? {});
  refuseTemplate(patch.template ?? null);
  // Folding is about the receiving session's own inbox: the configuration gives it, a parent does not.
  return { ...inherited, batch: deps.config.callback.batch ?? false, ...patch };
}

/** The schema is loaded with the first request, not with the daemon. */
async function defaultCallback(patch: CallbackPatch): Promise<CallbackConfig> {
  const schema = await import("../contract/session.ts");
  return schema.CallbackConfig.parse(patch);
}

export function refuseTemplate(template: string | null): void {
  const problem = template === null ? null : checkTemplate(template);
  if (problem === null) return;
  throw new Refusal("bad_template", `${problem} Leave it out to use the default.`, { problem });
}
