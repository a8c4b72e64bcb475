import type { Family, FamilyAgent, FamilyMember } from "../state/family.ts";
import type { FoundSession, ReadState } from "../port.ts";
import type { Tree } from "../state/trees.ts";

/** A session that was read, with the sub-agents inside its own file. */
export interface ReadSession {
  readonly found: Pick<FoundSession, "key" | "rootKey">;
  readonly state: Pick<ReadState, "facts" | "inline">;
}

/** Groups sessions into families. If a file's location does not show its root session, its rows do. */
export function treesOf(sessions: readonly ReadSession[]): Tree[] {
  const tops = new Map<string, ReadSession>();
  const byId = new Map<string, ReadSession>();
  for (const session of sessions) {
    if (!session.state.facts.isSubagent) tops.set(session.found.key, session);
    const known = byId.get(session.state.facts.id);
    if (known === undefined || known.state.facts.isSubagent) byId.set(session.state.facts.id, session);
  }
  const groups = Map.groupBy(sessions, (session) => topOf(session, { tops, byId }));
  return [...groups].map(([key, group]) => {
    const all = group.flatMap(membersOf);
    const root = tops.has(key) ? (all.find((member) => member.key === key) ?? null) : null;
    return { root, members: all.filter((member) => member !== root) };
  });
}

interface Known {
  readonly tops: ReadonlyMap<string, ReadSession>;
  readonly byId: ReadonlyMap<string, ReadSession>;
}

/** Returns the key of the root session, or a name for a family whose root is gone. */
function topOf(session: ReadSession, { tops, byId }: Known): string {
  const seen = new Set<ReadSession>();
  let at = session;
  for (;;) {
    const { found, state } = at;
    if (!state.facts.isSubagent) return found.key;
    if (found.rootKey !== null && tops.has(found.rootKey)) return found.rootKey;
    const root = byId.get(state.facts.rootId ?? "");
    if (root !== undefined && !root.state.facts.isSubagent) return root.found.key;
    const parent = byId.get(state.facts.parent?.id ?? "");
    seen.add(at);
    if (parent === undefined || seen.has(parent))
      return `gone:${found.rootKey ?? state.facts.rootId ?? found.key}`;
    at = parent;
  }
}

function membersOf({ found, state }: ReadSession): FamilyMember[] {
  const inline = Object.entries(state.inline).map(([id, facts]) => ({ key: `${found.key}#${id}`, facts }));
  return [{ key: found.key, facts: state.facts }, ...inline];
}

export interface FamilyByCall extends Family {
  /** The sub-agents that each call started or prompted again, by the call's id. */
  readonly byCall: ReadonlyMap<string, readonly FamilyAgent[]>;
}

export function withCalls(family: Family, { root, members }: Tree): FamilyByCall {
  const { agents } = family;
  const called = agents.filter(({ status }) => status.toolUseId !== null);
  const byCall = Map.groupBy(called, ({ status }) => status.toolUseId as string);
  for (const { callId, agentId } of [root, ...members].flatMap((member) => member?.facts.calls ?? [])) {
    const agent = agents.find(({ status }) => status.agentId === agentId);
    if (agent !== undefined && !byCall.has(callId)) byCall.set(callId, [agent]);
  }
  return { ...family, byCall };
}
