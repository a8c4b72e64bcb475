import type { FoundSession, SessionFacts } from "../history/port.ts";
import type { NewHistory } from "../store/port/store.ts";
import { folderScope } from "../system/folder.ts";
import type { Knowledge, Member } from "./catalog.ts";
import type { Context, Reading } from "./context.ts";
import { isExcluded } from "./excluded.ts";
import { sessionIdOf } from "./identity.ts";
import { doubt, livenessIn } from "./live-list.ts";
import { judgeFamily, lineageIn, type Verdict } from "./judge.ts";
import type { NewMember, OwnSession } from "./thread/protocol.ts";
import { newRow } from "./row.ts";
import { slices } from "./slice.ts";

/** A session that was found for the first time, with the facts from its head and tail. */
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
  const members = discoveries.map((discovery) => memberOf(context, discovery, { news, base }));
  for (const [i, { facts, found }] of discoveries.entries()) {
    const { kind } = members[i] as Member;
    catalog.put(members[i] as Member);
    if (kind === "imported" || kind === "ours") known.set(found.key, glanced(facts));
  }
  const verdicts = judgeFamily({
    judge: context.judge,
    reader: first.reading.reader,
    familyKey,
    known,
    ...(await livenessIn(context, { familyKey, known, reading: first.reading })),
  });
  doubt(context, { familyKey, known, verdicts });
  const rows = discoveries.map((discovery, i) =>
    newMember(context, discovery, {
      member: members[i] as Member,
      base,
      verdict: verdicts.get(discovery.found.key),
    }),
  );
  for (const slice of slices([...rows.keys()], ROWS_MAX)) {
    const numbers = await rpc.ask(
      "add",
      slice.map((i) => rows[i] as NewMember),
    );
    for (const [at, i] of slice.entries()) (members[i] as Member).no = numbers[at] as number;
    context.progress.tell();
  }
  return members.filter(({ kind }) => kind === "imported" || kind === "ours");
}

/** A family's position among the sessions in the store. */
export interface Base {
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
      ? (top?.kind === "excluded" && !context.asksAgain) || top?.isLeftOut === true
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
 * A known scope is kept, except `default`: that one dates from before scopes were folders, and the store
 * moves such families.
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
  const { node } = context.options;
  const isKept = member.kind === "imported" || member.kind === "ours";
  const record: NewHistory = {
    key: found.key,
    node,
    agent: reading.reader.agent,
    agentId: found.id,
    format: found.format,
    path: found.path,
    found: found as unknown as Record<string, unknown>,
    familyKey: member.familyKey,
    hostKey: null,
    sessionId: member.sessionId,
    rootId: member.rootId,
    kind: member.kind,
    stamp: found.stamp,
    sizeBytes: found.sizeBytes,
    problem,
    changedAt: Math.round(found.changedAt),
    status: verdict?.status ?? null,
    facts: isKept ? { facts, inline: {} } : null,
  };
  if (member.kind !== "imported" || verdict === undefined) return { record, session: null };
  const lineage = lineageIn(context.catalog, member, verdict);
  const told = { ...verdict.told, ...lineage, changedAt: found.changedAt };
  Object.assign(member, { ...lineage, state: told.judgement.state });
  const { agent } = reading.reader;
  const identity = { id: member.sessionId, rootId: member.rootId, agent, node, scope: base.scope };
  return { record, session: newRow(told, { ...identity, now: Date.now() }) };
}

/** Sub-agents that were found before their root session join its family now. */
async function adoptOrphans(context: Context, { familyKey, discoveries }: FamilyNews): Promise<void> {
  const top = discoveries.find(({ found }) => found.key === familyKey);
  if (top === undefined) return;
  const orphans = context.catalog.family(`gone:${top.found.format}:${top.found.id}`);
  for (const orphan of orphans) context.catalog.regroup(orphan, familyKey);
  const changes = orphans.map(({ no, rootId }) => ({ no, rootId, record: { familyKey }, session: null }));
  if (changes.length > 0) await context.rpc.ask("change", changes);
}

function glanced(facts: SessionFacts): Knowledge {
  return { facts, inline: {}, place: null, badCount: 0, bad: [] };
}
