import { Entry, Message, Session, Turn, type Usage } from "../../contract/index.ts";
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
): Promise<Session[]> {
  const reads = deps.store.read;
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
  // An imported session has no inbox and no turns in Kinfold. Its status comes from what its files show.
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
    ...shared(Session, record),
    spawnPoint,
    status,
    waiting,
    endedBy: record.endBy,
    ready: status === "idle" && queued === 0 && !isImported,
    treeUsage: usageBelow(record, tree),
    unread: queued,
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
    ...shared(Turn, turn),
    messageIds: messages.map((message) => message.id),
    entryRange: { from: turn.entryFrom, to: turn.entryTo },
    reserved:
      turn.reservedTokens === null && turn.reservedUsd === null
        ? null
        : { tokens: turn.reservedTokens, usd: turn.reservedUsd },
  };
}

/** Messages are stored unredacted for the agent, and shown redacted. */
export async function viewMessages(records: readonly MessageRecord[]): Promise<Message[]> {
  const bodies = await takeSteps(redactSlowly(records.map(({ body }) => ({ body }))));
  return records.map((message, i) => ({
    ...shared(Message, message),
    sender: { kind: message.senderKind, id: message.senderId },
    body: bodies[i]?.body ?? null,
  }));
}

export function viewEntry(entry: EntryRecord): Entry {
  return shared(Entry, entry);
}

/** Copies the fields that the row and the contract have in common. */
function shared<S extends { readonly shape: object }, R extends object>(
  { shape }: S,
  row: R,
): Pick<R, keyof R & keyof S["shape"]> {
  const fields = Object.entries(row).filter(([field]) => Object.hasOwn(shape, field));
  return Object.fromEntries(fields) as Pick<R, keyof R & keyof S["shape"]>;
}

export function describe(session: SessionRecord): string {
  return session.name === null ? `session ${session.shortId}` : `"${session.name}" (${session.shortId})`;
}
