import type { Family, FamilyMember } from "./family.ts";
import { familyOf } from "./family.ts";
import { livenessOf } from "./liveness.ts";
import type { FoundSession, HistoryReader, LiveSession, ReadState } from "../port.ts";

/** A session and every sub-agent below it, at any depth. */
export interface Tree {
  readonly root: FamilyMember | null;
  readonly members: readonly FamilyMember[];
}

export interface ReadSession {
  readonly found: Pick<FoundSession, "key" | "rootKey">;
  readonly state: Pick<ReadState, "facts" | "inline">;
}

/** Groups sessions into families. If the location on disk does not show whose file it is, its rows do. */
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
    const top = tops.get(key);
    const all = group.flatMap(membersOf);
    const root = top === undefined ? null : (all.find((member) => member.key === key) ?? null);
    return { root, members: all.filter((member) => member !== root) };
  });
}

/** Judges a family by all evidence: its files, the processes that the agent lists, and direct observation. */
export function judgeTree(
  reader: Pick<HistoryReader, "listsLive">,
  tree: Tree,
  known: {
    listed?: readonly LiveSession[];
    seenWorking?: ReadonlyMap<string, string>;
    /** The file was written a moment ago, so its process may not be listed yet. */
    isRecent?: boolean;
  } = {},
): Family {
  const { root, members } = withoutInternal(tree);
  const facts = root?.facts ?? members[0]?.facts;
  const live =
    facts === undefined
      ? undefined
      : livenessOf(reader, rootFacts({ root, members }, facts), known.listed ?? []);
  const isTooEarly = known.isRecent === true && live?.isAbsent === true;
  return familyOf({
    root,
    members,
    live: live === undefined ? undefined : { ...live, isTooEarly },
    seenWorking: known.seenWorking,
  });
}

/** An agent's internal sessions are not children of any session. */
function withoutInternal({ root, members }: Tree): Tree {
  return {
    root: root?.facts.internal === true ? null : root,
    members: members.filter(({ facts }) => !facts.internal),
  };
}

/**
 * Finds sessions that were resumed or forked into a new file and begin with the rows of another one. Maps
 * each key to the key of the session that had the rows first.
 */
export function replaysOf(sessions: readonly ReadSession[]): Map<string, string> {
  const tops = sessions.filter(({ state }) => !state.facts.isSubagent && state.facts.firstRef !== null);
  const groups = Map.groupBy(tops, ({ state }) => state.facts.firstRef);
  const found = new Map<string, string>();
  for (const group of groups.values()) {
    const [first, ...later] = group.toSorted(
      (a, b) => order(a) - order(b) || (a.found.key < b.found.key ? -1 : 1),
    );
    for (const {
      found: { key },
    } of later)
      found.set(key, (first as ReadSession).found.key);
  }
  return found;
}

/** Of several copies, the one that stopped first is the original. */
function order({ state: { facts } }: ReadSession): number {
  return facts.lastAt ?? 0;
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

/** The registry lists the root by its id, even when its file is gone. */
function rootFacts(tree: Tree, facts: FamilyMember["facts"]): FamilyMember["facts"] {
  return tree.root === null && facts.rootId !== null ? { ...facts, id: facts.rootId } : facts;
}
