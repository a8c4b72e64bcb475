import type { FoundSession, SessionFacts } from "../history/port.ts";
import type { SessionRecord } from "../store/port/store.ts";
import { folderScope } from "../system/folder.ts";
import { isKept, type Knowledge, type Member, recordChange, storedFields } from "./catalog.ts";
import type { Context, Reading } from "./context.ts";
import { isExcluded } from "./excluded.ts";
import { sessionIdOf } from "./identity.ts";
import { judgeNow } from "./live-list.ts";
import { lineageIn, type Verdict } from "./judge.ts";
import type { NewMember, OwnSession } from "./thread/protocol.ts";
import { newRow } from "./row.ts";
import { slices } from "./slice.ts";

/** A session that was found for the first time, with the facts from the beginning and end of its file. */
export interface Discovery {
  readonly found: FoundSession;
  readonly reading: Reading;
  readonly facts: SessionFacts;
  readonly problem: string | null;
  /** The file contains no session, or none yet. */
  readonly isEmpty: boolean;
  familyKey: string;
}

interface FamilyNews {
  readonly familyKey: string;
  readonly discoveries: readonly Discovery[];
  /** Managed and attached sessions, by format and the agent's own id. */
  readonly own: ReadonlyMap<string, OwnSession>;
}

const ROWS_MAX = 16;

/** Judges the new sessions of one family by what is known so far, and adds them to the store. */
export async function addFound(context: Context, news: FamilyNews): Promise<Member[]> {
  const { familyKey, discoveries } = news;
  const { catalog, rpc } = context;
  const [first] = discoveries;
  if (first === undefined) return [];
  await adoptOrphans(context, news);
  const known = await catalog.knowledge(familyKey);
  const base = baseOf(context, news);
  const added = discoveries.map((discovery) => ({
    discovery,
    member: memberOf(context, discovery, { news, base }),
  }));
  for (const { discovery, member } of added) {
    catalog.put(member);
    if (isKept(member)) known.set(member.key, glanced(discovery.facts));
  }
  const verdicts = await judgeNow(context, { familyKey, known, reading: first.reading });
  const rows = added.map(({ discovery, member }) => ({
    member,
    row: newMember(context, discovery, { member, base, verdict: verdicts.get(member.key) }),
  }));
  for (const slice of slices(rows, ROWS_MAX)) {
    const newMembers = slice.map(({ row }) => row);
    const numbers = await rpc.ask("add", newMembers);
    for (const [i, { member }] of slice.entries()) member.no = numbers[i] as number;
    context.progress.publish();
  }
  return added.map(({ member }) => member).filter(isKept);
}

interface Base {
  readonly rootId: string;
  /** The root session's id; null while its file has not been found. */
  readonly sessionId: string | null;
  readonly depth: number;
  readonly scope: string;
  readonly isOurs: boolean;
  readonly isExcluded: boolean;
}

function baseOf(context: Context, { familyKey, discoveries, own }: FamilyNews): Base {
  const top = context.catalog.members.get(familyKey);
  const [first] = discoveries as [Discovery];
  const rootAgentId = top?.agentId ?? first.facts.rootId ?? first.found.id;
  const ours = own.get(`${first.found.format} ${rootAgentId}`);
  if (ours !== undefined) {
    const { sessionId, rootId, depth } = ours;
    return { rootId, sessionId, depth, scope: ours.scope, isOurs: true, isExcluded: false };
  }
  const topNow = discoveries.find(({ found }) => found.key === familyKey);
  const isLeftOut =
    topNow === undefined
      ? (top?.kind === "excluded" && !context.rechecksExcluded) || top?.isLeftOut === true
      : isExcluded(topNow.facts.cwd, context.exclude, context.options.userHome.home);
  const isOurs = top?.kind === "ours";
  const base = {
    depth: top?.depth ?? 0,
    scope: scopeOf(context, { facts: (topNow ?? first).facts, known: top?.scope }),
    isOurs,
    isExcluded: isLeftOut,
  };
  if (top !== undefined) return { ...base, rootId: top.rootId, sessionId: top.sessionId };
  const rootId = sessionIdOf(familyKey);
  return { ...base, rootId, sessionId: topNow === undefined ? null : rootId };
}

/**
 * A family keeps its scope. Only a family in `default` gets a new one, because it was imported before scopes
 * were named after folders.
 */
export function scopeOf(
  { options }: Context,
  { facts, known }: { facts: Pick<SessionFacts, "cwd">; known: string | null | undefined },
): string {
  if (known != null && known !== "default") return known;
  return options.scope ?? folderScope(facts.cwd?.replaceAll("\0", "") ?? "");
}

function memberOf(
  context: Context,
  { found, facts, isEmpty }: Discovery,
  { news, base }: { news: FamilyNews; base: Base },
): Member {
  const isTop = found.key === news.familyKey;
  const sessionId = isTop && base.isOurs && base.sessionId !== null ? base.sessionId : sessionIdOf(found.key);
  const { home } = context.options.userHome;
  const isLeftOut = base.isExcluded || isExcluded(facts.cwd, context.exclude, home);
  return {
    no: 0,
    key: found.key,
    agentId: found.id,
    format: found.format,
    path: found.path,
    stamp: found.stamp,
    readStamp: null,
    kind: isEmpty
      ? "empty"
      : facts.internal
        ? "internal"
        : isLeftOut
          ? "excluded"
          : isTop && base.isOurs
            ? "ours"
            : "imported",
    familyKey: news.familyKey,
    hostKey: null,
    sessionId,
    rootId: base.rootId,
    goneAt: null,
    sizeBytes: found.sizeBytes,
    readBytes: 0,
    state: null,
    depth: isTop ? base.depth : null,
    parentId: null,
    cwd: facts.cwd,
    isLeftOut: false,
    scope: base.scope,
    found,
  };
}

function newMember(
  context: Context,
  { found, facts, problem, reading }: Discovery,
  at: { member: Member; base: Base; verdict: Verdict | undefined },
): NewMember {
  const { member, base, verdict } = at;
  const { agent } = reading.reader;
  const record = {
    ...storedFields(member),
    node: context.options.node,
    agent,
    found: found as unknown as Record<string, unknown>,
    problem,
    changedAt: Math.round(found.changedAt),
    status: verdict?.status ?? null,
    facts: isKept(member) ? { facts, inline: {} } : null,
  };
  if (member.kind !== "imported" || verdict === undefined) return { record, session: null };
  const { changedAt } = found;
  return { record, session: newSession(context, member, { verdict, agent, scope: base.scope, changedAt }) };
}

export function newSession(
  { catalog, options }: Context,
  member: Member,
  of: { verdict: Verdict; agent: string; scope: string; changedAt: number },
): SessionRecord {
  const { verdict, agent, scope, changedAt } = of;
  const lineage = lineageIn(catalog, member, verdict);
  Object.assign(member, { ...lineage, state: verdict.row.judgement.state });
  const { sessionId: id, rootId } = member;
  const identity = { id, rootId, agent, node: options.node, scope };
  return newRow({ ...verdict.row, ...lineage, changedAt }, identity);
}

/** Sub-agents that were found before their root session join its family now. */
async function adoptOrphans(context: Context, { familyKey, discoveries }: FamilyNews): Promise<void> {
  const top = discoveries.find(({ found }) => found.key === familyKey);
  if (top === undefined) return;
  const orphans = context.catalog.family(`gone:${top.found.format}:${top.found.id}`);
  for (const orphan of orphans) context.catalog.regroup(orphan, familyKey);
  const changes = orphans.map((orphan) => recordChange(orphan, { familyKey }));
  if (changes.length > 0) await context.rpc.ask("change", changes);
}

function glanced(facts: SessionFacts): Knowledge {
  return { facts, inline: {}, place: null, badCount: 0, bad: [] };
}
