import type { Entry, Message, Session, Turn, Usage } from "../../contract/index.ts";
import { importedStatus } from "../../domain/imported.ts";
import { addUsage } from "../../domain/receipt.ts";
import { redactSlowly } from "../../secrets/redact-long.ts";
import { statusOf } from "../../domain/session.ts";
import { roundFacts } from "../../kernel/round.ts";
import type { EntryRecord, MessageRecord, Reads, SessionRecord, TurnRecord } from "../../store/port/store.ts";
import { takeSteps } from "../../system/steps.ts";
import type { OperationDeps } from "../deps.ts";

type TreeUsage = Awaited<ReturnType<Reads["sessions"]["treeUsage"]>>;

/** Returns sessions as the contract describes them; status and usage are derived from current rows. */
export async function viewSessions(
  deps: OperationDeps,
  records: readonly SessionRecord[],
  reads: Reads = deps.store.read,
): Promise<Session[]> {
  const trees = new Map<string, Promise<TreeUsage>>();
  const configs = await takeSteps(redactSlowly(records.map(({ spawnConfig }) => spawnConfig)));
  return Promise.all(
    records.map(async (record, i) => {
      if (!trees.has(record.rootId)) trees.set(record.rootId, reads.sessions.treeUsage(record.rootId));
      const shown = { ...record, spawnConfig: configs[i]! };
      return viewSession(deps, shown, { reads, tree: (await trees.get(record.rootId))! });
    }),
  );
}

export async function viewOne(deps: OperationDeps, record: SessionRecord): Promise<Session> {
  const [session] = await viewSessions(deps, [record]);
  return session!;
}

async function viewSession(
  deps: OperationDeps,
  record: SessionRecord,
  { reads, tree }: { reads: Reads; tree: TreeUsage },
): Promise<Session> {
  // An imported session has no inbox and no turns of ours, so its status comes from its evidence.
  const isImported = record.origin === "imported";
  const { status, waiting } = isImported
    ? importedStatus(record.evidence)
    : statusOf(await roundFacts(reads, record));
  const queued = isImported ? 0 : await reads.messages.queuedCount(record.id);
  const spawnPoint =
    record.spawnTurnId === null
      ? null
      : { turnId: record.spawnTurnId, entryIndex: record.spawnEntryIndex ?? -1 };
  return {
    id: record.id,
    shortId: record.shortId,
    name: record.name,
    parentId: record.parentId,
    rootId: record.rootId,
    depth: record.depth,
    detachedAt: record.detachedAt,
    spawnPoint,
    spawnConfig: record.spawnConfig,
    effective: record.effective,
    title: record.title,
    agent: record.agent,
    profile: record.profile,
    model: record.model,
    cwd: record.cwd,
    node: record.node,
    origin: record.origin,
    source: record.source,
    status,
    waiting,
    round: record.round,
    outcome: record.outcome,
    outcomeReason: record.outcomeReason,
    endedBy: record.endBy,
    ready: status === "idle" && queued === 0 && !isImported,
    evidence: record.evidence,
    seen: record.seen,
    callback: record.callback,
    onParentEnd: record.onParentEnd,
    scope: record.scope,
    agentSessionId: record.agentSessionId,
    messageCount: record.messageCount,
    toolUseCount: record.toolUseCount,
    usage: record.usage,
    treeUsage: usageBelow(record, tree),
    unread: queued,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    lastActivityAt: record.lastActivityAt,
    endedAt: record.endedAt,
    ...(record.endReason === "rebuilt" ? { rebuilt: true } : {}),
    url: `${deps.address()}/#/sessions/${record.shortId}`,
  };
}

function usageBelow(session: SessionRecord, tree: TreeUsage): Usage {
  const inside = new Set([session.id]);
  let usage = session.usage;
  // The rows are sorted by depth: each parent comes before its children.
  for (const each of tree) {
    if (each.parentId === null || !inside.has(each.parentId)) continue;
    inside.add(each.id);
    usage = addUsage(usage, each.usage);
  }
  return usage;
}

export async function viewTurn(reads: Reads, turn: TurnRecord): Promise<Turn> {
  const messages = await reads.messages.ofTurn(turn.id);
  return {
    id: turn.id,
    sessionId: turn.sessionId,
    index: turn.index,
    round: turn.round,
    kind: turn.kind,
    status: turn.status,
    description: turn.description,
    messageIds: messages.map((message) => message.id),
    attempt: turn.attempt,
    startedAt: turn.startedAt,
    settledAt: turn.settledAt,
    error: turn.error,
    stopReason: turn.stopReason,
    lastAssistantMessage: turn.lastAssistantMessage,
    entryRange: { from: turn.entryFrom, to: turn.entryTo },
    toolUseCount: turn.toolUseCount,
    usage: turn.usage,
    reserved:
      turn.reservedTokens === null && turn.reservedUsd === null
        ? null
        : { tokens: turn.reservedTokens, usd: turn.reservedUsd },
    receipt: turn.receipt,
  };
}

/** Messages are stored unredacted for the agent, and shown redacted. */
export async function viewMessages(records: readonly MessageRecord[]): Promise<Message[]> {
  const bodies = await takeSteps(redactSlowly(records.map(({ body }) => ({ body }))));
  return records.map((message, i) => viewMessage(message, bodies[i]?.body ?? null));
}

function viewMessage(message: MessageRecord, body: string | null): Message {
  return {
    id: message.id,
    sessionId: message.sessionId,
    position: message.position,
    kind: message.kind,
    sender: { kind: message.senderKind, id: message.senderId },
    delivery: message.delivery,
    status: message.status,
    carrier: message.carrier,
    deliveryId: message.deliveryId,
    key: message.key,
    turnId: message.turnId,
    body,
    metadata: message.metadata,
    voidReason: message.voidReason,
    admittedAt: message.admittedAt,
  };
}

export function viewEntry(entry: EntryRecord): Entry {
  return {
    sessionId: entry.sessionId,
    index: entry.index,
    turnId: entry.turnId,
    author: entry.author,
    kind: entry.kind,
    body: entry.body,
    isSubagent: entry.isSubagent,
    at: entry.at,
  };
}

export function describe(session: SessionRecord): string {
  return session.name === null ? `session ${session.shortId}` : `"${session.name}" (${session.shortId})`;
}
