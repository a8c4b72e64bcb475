import type { AgentStatus } from "../../contract/index.ts";
import type { SessionFacts, SpawnCall, ToldState } from "../facts.ts";
import {
  type Judgement,
  judgeSession,
  judgeSubagent,
  type Liveness,
  NOT_KNOWN_ALIVE,
  notDoneBefore,
} from "./status.ts";

export interface FamilyMember {
  /** The file's `FoundSession.key`. For a sub-agent inside that file, `#` and the sub-agent's id follow. */
  readonly key: string;
  readonly facts: SessionFacts;
}

export interface FamilyInput {
  /** Null when the root's file is gone and only the files of its sub-agents are left. */
  readonly root: FamilyMember | null;
  readonly members: readonly FamilyMember[];
  readonly live?: Liveness;
  /** The members that are working at this moment, by key, with the reason why this is known. */
  readonly seenWorking?: ReadonlyMap<string, string>;
}

export interface FamilyAgent {
  readonly key: string | null;
  /** The key of the session or sub-agent that started this one; null only if the starter's files are gone. */
  readonly parentKey: string | null;
  /** How the link to the parent was proven, or a note that no link was found. */
  readonly link: string;
  readonly status: AgentStatus;
  readonly judgement: Judgement;
}

export interface Family {
  readonly judgement: Judgement | null;
  /** In the order they were started, parents before their children. */
  readonly agents: readonly FamilyAgent[];
}

/** Finds the call that started each sub-agent, at any depth, and judges every sub-agent. */
export function familyOf(input: FamilyInput): Family {
  const rootKey = input.root?.key ?? null;
  const nodes = linked(input);
  withoutCircles(nodes, rootKey);
  const judge = judging(nodes, { input, told: toldByAgent(input) });
  const idOf = new Map(nodes.map(({ key, id }) => [key, id]));
  const agents = inOrder(nodes, rootKey).map((node) => {
    const parentAgentId = node.parentKey === rootKey ? null : (idOf.get(node.parentKey) ?? null);
    return asAgent(node, judge(node), parentAgentId);
  });
  const runningCount = nodes.filter((node) => node.parentKey === rootKey && isRunning(judge(node))).length;
  const { root, seenWorking, live = NOT_KNOWN_ALIVE } = input;
  if (root === null) return { judgement: null, agents };
  const seen = seenWorking?.get(root.key) ?? null;
  return { judgement: judgeSession({ facts: root.facts, live, seenWorking: seen, runningCount }), agents };
}

interface Node {
  readonly id: string;
  readonly key: string | null;
  readonly facts: SessionFacts | null;
  parentKey: string | null;
  call: SpawnCall | null;
  link: string;
  depth: number;
}

interface Placed {
  readonly member: FamilyMember;
  readonly call: SpawnCall;
}

function linked({ root, members }: FamilyInput): Node[] {
  const all = root === null ? members : [root, ...members];
  const calls = all.flatMap((member) => member.facts.calls.map((call): Placed => ({ member, call })));
  const taken = new Set<Placed>();
  const rootKey = root?.key ?? null;
  const nodes = members.map((member): Node => {
    const node = { id: member.facts.id, key: member.key, facts: member.facts, depth: 0 };
    return { ...node, parentKey: rootKey, call: null, link: "no link to a call was found" };
  });
  for (const finder of finders(all, calls)) {
    for (const [index, node] of nodes.entries()) {
      if (node.call !== null) continue;
      const found = finder(members[index] as FamilyMember, taken);
      if (found === null || found.parent.key === node.key) continue;
      [node.parentKey, node.link] = [found.parent.key, found.how];
      node.call = found.call?.call ?? null;
      if (found.call !== null && !found.call.call.many) taken.add(found.call);
    }
  }
  return [...nodes, ...withoutFile(calls, nodes)];
}

interface Link {
  readonly parent: FamilyMember;
  readonly call: Placed | null;
  readonly how: string;
}
type Finder = (child: FamilyMember, taken: ReadonlySet<Placed>) => Link | null;

/** The ways to find a child's call, strongest first. Each way is tried for all children before the next. */
function finders(all: readonly FamilyMember[], calls: readonly Placed[]): Finder[] {
  const byCallId = firstOf(calls, ({ call }) => call.callId);
  const byAgentId = firstOf(calls, ({ call }) => call.agentId);
  const byId = firstOf(all, ({ facts }) => facts.id);
  const toldCallId = new Map<string, string>();
  for (const { facts } of all) {
    for (const { agentId, callId } of facts.told) if (callId !== null) toldCallId.set(agentId, callId);
  }
  const throughCall = (placed: Placed | undefined, how: string): Link | null =>
    placed === undefined ? null : { parent: placed.member, call: placed, how };
  return [
    ({ facts }) =>
      facts.parent?.callId ? throughCall(byCallId.get(facts.parent.callId), facts.parent.how) : null,
    ({ facts }) => throughCall(byAgentId.get(facts.id), "the call's result names it"),
    ({ facts }) => throughCall(byTaskId(facts, calls), facts.parent?.how ?? ""),
    ({ facts }) =>
      throughCall(byCallId.get(toldCallId.get(facts.id) ?? ""), "a report to its parent names the call"),
    ({ facts }, taken) => throughCall(byPrompt(facts, calls, taken), "only one call has its prompt"),
    ({ facts }) => {
      const parent = facts.parent?.id ? byId.get(facts.parent.id) : undefined;
      return parent === undefined ? null : { parent, call: null, how: facts.parent?.how ?? "" };
    },
  ];
}

function byTaskId(facts: SessionFacts, calls: readonly Placed[]): Placed | undefined {
  const ids = facts.parent?.taskIds ?? [];
  if (ids.length === 0) return undefined;
  return calls.find(({ call }) => call.taskIds.some((id) => ids.includes(id)));
}

/**
 * Finds the one unassigned call with this prompt; undefined if several have it. If the call and the session
 * both have a name, the names must be equal.
 */
function byPrompt(
  facts: SessionFacts,
  calls: readonly Placed[],
  taken: ReadonlySet<Placed>,
): Placed | undefined {
  if (facts.promptKey === null) return undefined;
  const fits = calls.filter(
    (placed) =>
      placed.call.promptKey === facts.promptKey &&
      !taken.has(placed) &&
      (placed.call.agentId === null || placed.call.agentId === facts.id) &&
      (placed.call.name === null || facts.name === null || placed.call.name === facts.name) &&
      placed.member.facts !== facts,
  );
  return fits.length === 1 ? fits[0] : undefined;
}

/** Returns a node for each call whose sub-agent has no file: it never started, or its file was removed. */
function withoutFile(calls: readonly Placed[], nodes: readonly Node[]): Node[] {
  const answered = new Set(nodes.map(({ call }) => call));
  const seen = new Set<string>();
  // A sub-agent that was prompted again has several calls, but is counted once.
  const known = new Set(nodes.map(({ id }) => id));
  return calls.flatMap(({ call, member }): Node[] => {
    if (answered.has(call) || seen.has(call.callId) || (call.many && call.result !== null)) return [];
    seen.add(call.callId);
    const id = call.agentId ?? call.callId;
    if (known.has(id)) return [];
    known.add(id);
    return [{ id, key: null, facts: null, parentKey: member.key, call, link: "its call", depth: 0 }];
  });
}

/** Cuts each cycle at one node, then sets the depth of every node. */
function withoutCircles(nodes: readonly Node[], rootKey: string | null): void {
  const byKey = firstOf(nodes, ({ key }) => key);
  for (const node of nodes) {
    if (!chainOf(node, byKey).includes(node)) continue;
    [node.parentKey, node.call, node.link] = [rootKey, null, "its links form a cycle"];
  }
  for (const node of nodes) node.depth = chainOf(node, byKey).length + 1;
}

/** Returns all ancestors of a node, up to the root or until a cycle closes. */
function chainOf(node: Node, byKey: ReadonlyMap<string, Node>): Node[] {
  const seen = new Set<Node>();
  for (let above = parentOf(node, byKey); above !== undefined; above = parentOf(above, byKey)) {
    if (seen.has(above)) break;
    seen.add(above);
  }
  return [...seen];
}

function parentOf(node: Node, byKey: ReadonlyMap<string, Node>): Node | undefined {
  return node.parentKey === null ? undefined : byKey.get(node.parentKey);
}

/** Returns, for each sub-agent, the latest report about it that a session of the family received. */
function toldByAgent({ root, members }: FamilyInput): ReadonlyMap<string, ToldState> {
  const latest = new Map<string, ToldState>();
  for (const { facts } of root === null ? members : [root, ...members]) {
    for (const told of facts.told) {
      const known = latest.get(told.agentId);
      if (known === undefined || (told.at ?? 0) >= (known.at ?? 0)) latest.set(told.agentId, told);
    }
  }
  return latest;
}

function judging(
  nodes: readonly Node[],
  { input, told }: { input: FamilyInput; told: ReadonlyMap<string, ToldState> },
): (node: Node) => Judgement {
  const byKey = firstOf(nodes, ({ key }) => key);
  const children = Map.groupBy(nodes, ({ parentKey }) => parentKey);
  const judged = new Map<Node, Judgement>();
  const live = input.live ?? NOT_KNOWN_ALIVE;
  const downwards = nodes.toSorted((a, b) => a.depth - b.depth);
  for (const node of downwards) {
    const parent = parentOf(node, byKey);
    const own = judgeSubagent({
      facts: node.facts,
      call: node.call,
      told: told.get(node.id) ?? null,
      root: live,
      seenWorking: (node.key === null ? null : input.seenWorking?.get(node.key)) ?? null,
      parentIsOver: parent === undefined ? live.doing === "idle" : !isRunning(judged.get(parent)),
    });
    judged.set(node, own);
  }
  // The second pass goes bottom-up, because a parent is not done until its children are.
  for (const node of downwards.toReversed()) {
    const below = node.key === null ? [] : (children.get(node.key) ?? []);
    const runningCount = below.filter((child) => isRunning(judged.get(child))).length;
    judged.set(node, notDoneBefore(judged.get(node) as Judgement, runningCount));
  }
  return (node) => judged.get(node) as Judgement;
}

function isRunning(judgement: Judgement | undefined): boolean {
  return judgement?.state === "running" || judgement?.state === "waiting" || judgement?.state === "pending";
}

function inOrder(nodes: readonly Node[], rootKey: string | null): Node[] {
  const begun = (node: Node): number => node.call?.at ?? node.facts?.createdAt ?? Number.MAX_SAFE_INTEGER;
  const children = Map.groupBy(
    nodes.toSorted((a, b) => begun(a) - begun(b)),
    ({ parentKey }) => parentKey,
  );
  const keys = new Set(nodes.map(({ key }) => key));
  const tops = [...children].filter(([key]) => key === rootKey || key === null || !keys.has(key));
  const ordered: Node[] = [];
  const waiting = tops.flatMap(([, below]) => below).toReversed();
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    ordered.push(node);
    if (node.key !== null) waiting.push(...(children.get(node.key) ?? []).toReversed());
  }
  return ordered;
}

function asAgent(node: Node, judgement: Judgement, parentAgentId: string | null): FamilyAgent {
  const { key, parentKey, link, call, facts } = node;
  const result = call === null || call.many ? null : call.result;
  const isOver = !isRunning(judgement);
  return {
    key,
    parentKey,
    link,
    judgement,
    status: {
      agentId: node.id,
      state: judgement.state,
      error: judgement.error,
      messageCount: facts?.messageCount ?? 0,
      lastUpdated: facts?.lastAt ?? result?.at ?? null,
      durationMs: result?.durationMs ?? (isOver && facts !== null ? spanOf(facts) : null),
      tokens: result?.tokens ?? (facts === null ? null : tokensOf(facts)),
      toolUseId: call?.callId ?? null,
      parentAgentId,
      depth: node.depth,
      description: facts?.description ?? call?.description ?? null,
      evidence: judgement.reason,
      confidence: judgement.confidence,
    },
  };
}

function spanOf({ createdAt, lastAt }: SessionFacts): number | null {
  return createdAt === null || lastAt === null || lastAt < createdAt ? null : lastAt - createdAt;
}

function tokensOf({ usage }: SessionFacts): number | null {
  const tokens = usage.inputTokens + usage.cachedTokens + usage.outputTokens;
  return tokens === 0 ? null : tokens;
}

function firstOf<T>(items: readonly T[], nameOf: (item: T) => string | null): Map<string, T> {
  const found = new Map<string, T>();
  for (const item of items) {
    const name = nameOf(item);
    if (name !== null && !found.has(name)) found.set(name, item);
  }
  return found;
}
