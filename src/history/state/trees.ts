import { type Family, type FamilyMember, familyOf } from "./family.ts";
import { type Liveness, NOT_KNOWN_ALIVE } from "./status.ts";
import type { FoundSession, HistoryReader, LiveSession, ReadState } from "../port.ts";

/** A session and every sub-agent below it, at any depth. */
export interface Tree {
  readonly root: FamilyMember | null;
  readonly members: readonly FamilyMember[];
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
  if (facts === undefined) return { judgement: null, agents: [] };
  const live = livenessOf(reader, rootFacts({ root, members }, facts), known.listed ?? []);
  const isTooEarly = known.isRecent === true && live.isAbsent === true;
  return familyOf({ root, members, live: { ...live, isTooEarly }, seenWorking: known.seenWorking });
}

/** Removes the agent's internal sessions, which are not children of any session. */
function withoutInternal({ root, members }: Tree): Tree {
  return {
    root: root?.facts.internal === true ? null : root,
    members: members.filter(({ facts }) => !facts.internal),
  };
}

interface ReadSession {
  readonly found: Pick<FoundSession, "key">;
  readonly state: Pick<ReadState, "facts">;
}

/**
 * Finds sessions that were resumed or forked into a new file, which begins with the rows of an earlier
 * session. Maps the key of each new session to the key of the earlier one. Of the sessions with the same
 * first row, the one whose last row is oldest counts as the earlier one.
 */
export function replaysOf(sessions: readonly ReadSession[]): Map<string, string> {
  const tops = sessions.filter(({ state }) => !state.facts.isSubagent && state.facts.firstRef !== null);
  const ages = tops.map(({ found: { key }, state: { facts } }) => ({ key, facts, at: facts.lastAt ?? 0 }));
  const byAge = ages.toSorted((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
  const copies = Map.groupBy(byAge, ({ facts }) => facts.firstRef).values();
  return new Map(
    copies.flatMap(([first, ...later]) => later.map(({ key }) => [key, (first as { key: string }).key])),
  );
}

/** The registry lists a root by its id. If the root's file is gone, a sub-agent's facts have that id. */
function rootFacts(tree: Tree, facts: FamilyMember["facts"]): FamilyMember["facts"] {
  return tree.root === null && facts.rootId !== null ? { ...facts, id: facts.rootId } : facts;
}

/** Whether a session's process is alive, according to the agent's own registry. */
export function livenessOf(
  reader: Pick<HistoryReader, "listsLive">,
  facts: FamilyMember["facts"],
  listed: readonly LiveSession[],
): Liveness {
  const own = listed.filter(({ id }) => id === facts.id);
  const best = own.find(({ alive }) => alive === true) ?? own.find(({ alive }) => alive === null) ?? own[0];
  if (best !== undefined) return best;
  if (reader.listsLive?.(facts) !== true) return NOT_KNOWN_ALIVE;
  return { ...NOT_KNOWN_ALIVE, alive: false, isAbsent: true, how: "no process of the agent works on it" };
}
