import type { AgentStatus } from "../contract/index.ts";
import type { Family, FamilyMember } from "../history/state/family.ts";
import type { Judgement } from "../history/state/status.ts";
import type { HistoryReader, LiveSession } from "../history/port.ts";
import { judgeTree } from "../history/state/trees.ts";
import type { Catalog, Knowledge, Member } from "./catalog.ts";
import { inlineKey } from "./identity.ts";
import { isSkipped } from "./read.ts";
import { redactStatus, type RowInput } from "./row.ts";

export interface JudgeInput {
  readonly reader: HistoryReader;
  readonly familyKey: string;
  /** What was read from each member's own file, by the member's key. Members without one are not listed. */
  readonly known: ReadonlyMap<string, Knowledge>;
  readonly listed: readonly LiveSession[];
  /** The members known to be working now, by key. The value says how this is known. */
  readonly seenWorking: ReadonlyMap<string, string>;
  /**
   * The family's files were written recently, so a missing process does not yet mean that work has stopped.
   */
  readonly isRecent: boolean;
}

export interface Verdict {
  readonly row: Omit<RowInput, "parentId" | "depth" | "changedAt"> & {
    readonly parentKey: string | null;
    readonly depth: number;
  };
  /** The session's status as a sub-agent; null for the root session. */
  readonly status: AgentStatus | null;
  /** Sub-agents that this session's calls started and that left no file. */
  readonly missing: readonly AgentStatus[];
}

/** Returns the verdicts, by key, for those sessions of a family that left a file. */
export function judgeFamily(input: JudgeInput): Map<string, Verdict> {
  const { known, familyKey } = input;
  const members = membersOf(known);
  const root = members.find(({ key, facts }) => key === familyKey && !facts.isSubagent) ?? null;
  const tree = { root, members: members.filter((member) => member !== root) };
  const family = judgeTree(input.reader, tree, {
    listed: input.listed,
    seenWorking: stillWorking(input, members, root),
    isRecent: input.isRecent,
  });
  const missing = missingOf(family);
  const facts = new Map(members.map((member) => [member.key, member.facts]));
  const unsure = new Set([...known].flatMap(([key, { bad }]) => (bad.some(isSkipped) ? [key] : [])));
  const verdicts = new Map<string, Verdict>();
  if (root !== null && family.judgement !== null) {
    const own = { cwd: null, callId: null, link: null, parentKey: null, depth: 0 };
    const judgement = unsure.has(root.key) ? lessSure(family.judgement) : family.judgement;
    const row = { facts: root.facts, judgement, ...own };
    verdicts.set(root.key, { row, status: null, missing: missing.get(root.key) ?? [] });
  }
  for (const { key, parentKey, link, ...judged } of family.agents) {
    const own = key === null ? undefined : facts.get(key);
    if (key === null || own === undefined) continue;
    const isUnsure = unsure.has(key) || unsure.has(parentKey ?? "");
    const judgement = isUnsure ? lessSure(judged.judgement) : judged.judgement;
    const { confidence, reason: evidence } = judgement;
    const status = isUnsure ? { ...judged.status, confidence, evidence } : judged.status;
    const row = {
      facts: own,
      judgement,
      cwd: root?.facts.cwd ?? null,
      callId: status.toolUseId,
      link,
      parentKey,
      depth: status.depth,
    };
    verdicts.set(key, { row, status: redactStatus(status), missing: missing.get(key) ?? [] });
  }
  return verdicts;
}

/** Lowers the confidence, because a line that could not be read may contradict the verdict. */
function lessSure(judged: Judgement): Judgement {
  const confidence = judged.confidence === "certain" ? "likely" : "guess";
  const reason = `${judged.reason}; a line of the file was too long to be read`;
  return { ...judged, confidence, reason };
}

/** Includes sub-agents whose rows are in another session's file. */
function membersOf(known: ReadonlyMap<string, Knowledge>): FamilyMember[] {
  return [...known].flatMap(([key, { facts, inline }]) => {
    const inside = Object.entries(inline).map(([id, own]) => ({ key: inlineKey(key, id), facts: own }));
    return [{ key, facts }, ...inside];
  });
}

/** Returns members seen working whose files show no end; none if the agent's process list is used. */
function stillWorking(
  { reader, seenWorking }: JudgeInput,
  members: readonly FamilyMember[],
  root: FamilyMember | null,
): Map<string, string> {
  const isListed = root !== null && reader.listsLive?.(root.facts) === true;
  const working = new Map<string, string>();
  if (isListed) return working;
  for (const { key, facts } of members) {
    const why = seenWorking.get(key);
    const isOver = ["ended", "failed", "interrupted"].includes(facts.ending.kind);
    if (why !== undefined && !isOver) working.set(key, why);
  }
  return working;
}

function missingOf(family: Family): Map<string, AgentStatus[]> {
  const missing = new Map<string, AgentStatus[]>();
  for (const { key, parentKey, status } of family.agents) {
    if (key !== null || parentKey === null) continue;
    const statuses = missing.get(parentKey) ?? [];
    statuses.push(redactStatus(status));
    missing.set(parentKey, statuses);
  }
  return missing;
}

/** Returns our id of the session that started this one, and this session's depth. */
export function lineageIn(
  catalog: Catalog,
  { key, familyKey }: Pick<Member, "key" | "familyKey">,
  { row }: Verdict,
): { parentId: string | null; depth: number } {
  const top = catalog.members.get(familyKey);
  const base = top?.kind === "ours" ? (top.depth ?? 0) : 0;
  if (key === familyKey) return { parentId: null, depth: base };
  const parent = catalog.members.get(row.parentKey ?? familyKey);
  return { parentId: parent?.sessionId ?? null, depth: base + row.depth };
}
