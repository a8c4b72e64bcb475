import type { Agent, Effective, Profile } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { redactSlowly } from "../../secrets/redact-long.ts";
import { agentsThat } from "./ceiling.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { takeSteps } from "../../system/steps.ts";
import type { OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { until } from "../wait/until.ts";

type Inherit = Effective["inherit"];

/** Returns what a session inherits from its parent; a root inherits nothing. Refusals name an alternative. */
export async function decideInherit(
  deps: OperationDeps,
  of: { asked: Inherit | undefined; profile: Profile; parent: SessionRecord | null; agent: Agent },
): Promise<Inherit> {
  const { asked, profile, parent, agent } = of;
  if (parent === null) {
    if (asked === undefined || asked === "none") return "none";
    throw new Refusal("invalid_input", "A root session has no parent to inherit from. Leave inherit out.");
  }
  if (!deps.config.inheritContext) {
    if (asked === undefined || asked === "none") return "none";
    throw new Refusal(
      "inherit_off",
      `Nothing is inherited here: the configuration has inheritContext off. Leave inherit out, and put what the child must know into the prompt.`,
    );
  }
  const mode = asked ?? profile.inherit ?? "brief";
  if (mode === "fork") await refuseUnforkable(deps, parent, agent);
  return mode;
}

/**
 * Waits until the tool call that requested this spawn is an entry of the parent's transcript. The request may
 * arrive before earlier text of the agent is stored. Entries are written in order, so once the tool call is
 * stored, everything before it is too. For an agent that does not report its tool calls, the wait ends after
 * `CALL_SEEN_MS`.
 */
export async function callSeen(
  deps: OperationDeps,
  caller: CallerContext,
  { parent, prompt }: { parent: SessionRecord; prompt: string },
): Promise<void> {
  if (caller.kind !== "session" || caller.id !== parent.id || parent.origin !== "managed") return;
  const { read } = deps.store;
  if ((await read.turns.running(parent.id)) === null) return;
  const calls = answeredCalls(deps);
  // One tool call may spawn several children, so the call's id and the prompt together identify a spawn.
  const keyOf = (callId: string | undefined): string =>
    `${parent.id} ${callId} ${prompt.length} ${prompt.slice(0, 80)}`;
  // Entries are stored redacted, so the search is for the redacted prompt.
  const kept = JSON.stringify(await takeSteps(redactSlowly(prompt.trim()))).slice(1, -1);
  const look = async (): Promise<string | null> => {
    const newest = await read.entries.tail(parent.id, {
      ...NEWEST_CALLS,
      after: parent.entryCount - LOOKED_AT_MAX,
    });
    const call = newest.find(({ body }) => !calls.has(keyOf(body.callId)) && hasPrompt(body.input, kept));
    return call === undefined ? null : keyOf(call.body.callId);
  };
  const seen = await until(deps, { rootId: parent.rootId, timeoutMs: CALL_SEEN_MS }, look);
  if (seen !== null) note(calls, seen);
}

/** Returns the tool calls already matched to a spawn. A later equal spawn must match another tool call. */
function answeredCalls(deps: OperationDeps): Set<string> {
  const calls = answered.get(deps) ?? new Set<string>();
  answered.set(deps, calls);
  return calls;
}

function note(calls: Set<string>, call: string): void {
  calls.add(call);
  const [oldest] = calls;
  if (calls.size > CALLS_MAX && oldest !== undefined) calls.delete(oldest);
}

const answered = new WeakMap<OperationDeps, Set<string>>();
const CALLS_MAX = 1_000;

const CALL_SEEN_MS = 300;
const LOOKED_AT_MAX = 1_000;
const NEWEST_CALLS = {
  kinds: ["toolCall"],
  before: Number.MAX_SAFE_INTEGER,
  bytesMax: 65_536,
  entryBytesMax: 16_384,
  limit: 16,
} as const;

/** Looks for the prompt anywhere in the call's input, because agents wrap it differently. */
function hasPrompt(input: unknown, kept: string): boolean {
  return JSON.stringify(input ?? null).includes(kept);
}

async function refuseUnforkable(deps: OperationDeps, parent: SessionRecord, agent: Agent): Promise<void> {
  const problem = unforkable(parent, agent);
  if (problem === null) return;
  const able = await agentsThat(deps, (each) => each.fork);
  throw new Refusal(
    "cannot_fork",
    `${problem} Agents that can fork their own conversations: ${able.join(", ") || "none"}. Use inherit "brief" or "tail".`,
    { agent: agent.name, able },
  );
}

function unforkable(parent: SessionRecord, agent: Agent): string | null {
  if (agent.name !== parent.agent) {
    return `A fork stays with its agent: the parent's is ${parent.agent}, and ${agent.name} was asked for.`;
  }
  if (!agent.fork) return `The agent "${agent.name}" cannot fork a conversation.`;
  const isBegun = parent.origin === "managed" && parent.agentSessionId !== null;
  return isBegun ? null : "The parent has no conversation of its own here that could be forked.";
}
