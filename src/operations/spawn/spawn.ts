import type { Effective, InputOf, SpawnOutput } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { lowered, spawnLimit } from "../../domain/limit.ts";
import { admit } from "../../kernel/admit.ts";
import type { Chain } from "../../kernel/chain.ts";
import { appendEntries } from "../../kernel/entry.ts";
import { newId } from "../../system/id.ts";
import { inherited } from "../../kernel/inherit.ts";
import type { NewEntry, Reads, SessionRecord, Tx } from "../../store/port/store.ts";
import { folderScope } from "../../system/folder.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import { callSeen } from "./inherit.ts";
import type { CallerContext, Call } from "../port.ts";
import { isBelow, refuseImported, resolve } from "../access/resolve.ts";
import { decideStart, keyOwner, newSession, refuseReusedKey, type Start } from "./effective.ts";
import { describe, viewOne } from "../read/view.ts";
import { keyReach, refuseGone, requireKeyReach } from "../access/authority.ts";
import { decideWithin } from "./ceiling.ts";
import { withInstructions } from "../../domain/inherited-text.ts";

const REPLY_LOST_MS = 10 * 60_000;

/** Adds the child, its first message and the event in one transaction, under the tree's lock. */
export async function spawn(
  deps: OperationDeps,
  caller: CallerContext,
  { input, call }: { input: InputOf<"spawn">; call: Call & { chain?: Chain } },
): Promise<SpawnOutput> {
  deps.reached("spawn.parsed");
  const parent = await resolve(deps, caller, input.id);
  await requireSpawner(deps, caller, parent);
  refuseImported(parent);
  requireKeyReach(caller, parent);
  const start = await decideStart(deps, input, { parent, key: keyReach(caller) });
  deps.reached("spawn.decided");
  const key = input.key ?? (input.name === undefined ? call.callId : null);
  if (start.effective.inherit !== "none") await callSeen(deps, caller, { parent, prompt: input.prompt });
  const { child, existing, bytes } = await deps.store.write(parent.rootId, (tx) =>
    addChild(deps, tx, { caller, input, start, parentId: parent.id, key, chain: call.chain ?? null }),
  );
  deps.reached("spawn.committed");
  return spawnReply(deps, child, { existing, bytes, asked: start.effective.inherit });
}

export const create: Handler<"create"> = async (deps, caller, { input }) => {
  const start = await decideStart(deps, input, { parent: null, key: keyReach(caller) });
  const scope = scopeFor(caller, input.scope) ?? folderScope(start.effective.cwd);
  const owner = keyOwner(caller);
  const found =
    input.key === undefined ? null : await byKey(deps.store.read, owner, { key: input.key, start });
  if (found !== null) return spawnReply(deps, found, EXISTING);
  const id = newId();
  const now = deps.now();
  const row = newSession(id, input, {
    start,
    parent: null,
    source: input.source,
    scope,
    onParentEnd: input.onParentEnd ?? deps.config.onParentEnd,
    keys: keysOf(owner, input.key ?? null, start),
    now,
  });
  try {
    const prompt = firstPrompt(input.prompt, start);
    // Pass a copy, because opening the round changes the row and a retry of the write needs the original.
    await deps.store.write(id, (tx) => addRow(tx, { ...row }, { caller, prompt, now, inherited: null }));
  } catch (error) {
    // An equal request may have won the race for the unique key. Return its session.
    const winner =
      input.key === undefined ? null : await byKey(deps.store.read, owner, { key: input.key, start });
    if (winner === null) throw error;
    return spawnReply(deps, winner, EXISTING);
  }
  return spawnReply(deps, row, { existing: false, bytes: 0, asked: "none" });
};

/** Returns a new root's scope, or null if none is set. A scoped API key starts roots only in its scope. */
function scopeFor(caller: CallerContext, asked: string | undefined): string | null {
  if (caller.kind !== "outside" || caller.scope === null) return asked ?? null;
  if (asked === undefined || asked === caller.scope) return caller.scope;
  throw new Refusal(
    "forbidden",
    `The API key "${caller.name}" reaches the scope "${caller.scope}" only. Leave the scope out.`,
    { scope: caller.scope },
  );
}

interface ChildOrder {
  readonly caller: CallerContext;
  readonly input: InputOf<"spawn">;
  readonly start: Start;
  readonly parentId: string;
  readonly key: string | null;
  /** The following steps, if this session begins a chain. */
  readonly chain: Chain | null;
}

async function addChild(
  deps: OperationDeps,
  tx: Tx,
  order: ChildOrder,
): Promise<{ child: SessionRecord; existing: boolean; bytes: number }> {
  const { caller, input, start } = order;
  const now = deps.now();
  const parent = await tx.sessions.byId(order.parentId);
  if (parent === null || parent.endedAt !== null) throw parentEnded();
  await refuseGone(tx, caller, parent);
  const owner = keyOwner(caller);
  const earlier = await findExisting(tx, { ...order, owner, now });
  if (earlier !== null) return { child: earlier, existing: true, bytes: 0 };
  const { counts } = start.effective;
  await refuseLimit(deps, tx, { parent, now, counts, steps: 1 + (order.chain?.chain.length ?? 0) });
  const limits = await decideWithin(tx, parent, {
    asked: input.limits ?? {},
    limits: start.effective.limits,
    now,
  });
  const child = newSession(newId(), input, {
    start: { ...start, effective: { ...start.effective, limits } },
    parent,
    source: "subsession",
    scope: parent.scope,
    onParentEnd: input.onParentEnd ?? deps.config.onParentEnd,
    keys: keysOf(owner, order.key, start),
    now,
  });
  child.spawnConfig = { ...child.spawnConfig, ...order.chain };
  const turn = await tx.turns.running(parent.id);
  child.spawnTurnId = turn?.id ?? null;
  child.spawnEntryIndex = turn === null ? null : parent.entryCount - 1;
  const { inherit: mode } = start.effective;
  const { tailChars } = deps.config;
  const given = mode === "none" ? null : await inherited(tx, { child, parent, mode, tailChars, now });
  if (given === null) child.effective = { ...child.effective, inherit: "none" };
  await tx.tree.countSpawn();
  const prompt = firstPrompt(input.prompt, start);
  await addRow(tx, child, { caller, prompt, now, inherited: given?.entry ?? null });
  return { child, existing: false, bytes: given?.bytes ?? 0 };
}

async function addRow(
  tx: Tx,
  session: SessionRecord,
  first: { caller: CallerContext; prompt: string; now: number; inherited: NewEntry | null },
): Promise<void> {
  const { caller, now } = first;
  await tx.sessions.add(session);
  const data = {
    name: session.name,
    parentId: session.parentId,
    agent: session.agent,
    model: session.model,
    depth: session.depth,
  };
  tx.append({ sessionId: session.id, type: "session.created", text: null, data, at: now });
  if (session.parentId !== null) {
    const text = `spawned child session ${session.id} with model ${session.model ?? "default"}`;
    const childId = session.id;
    tx.append({
      sessionId: session.parentId,
      type: "session.spawned",
      text,
      data: { ...data, childId },
      at: now,
    });
  }
  if (first.inherited !== null) await appendEntries(tx, session.id, [first.inherited]);
  const sender = { senderKind: caller.kind, senderId: caller.id };
  await admit(tx, session, { now, kind: "prompt", delivery: "followUp", body: first.prompt, ...sender });
}

function firstPrompt(prompt: string, { effective, instructions }: Start): string {
  return withInstructions(prompt, { profile: effective.profile, instructions });
}

async function findExisting(
  tx: Tx,
  order: ChildOrder & { owner: string; now: number },
): Promise<SessionRecord | null> {
  const { input, start, key, owner } = order;
  if (key !== null) {
    const found = await byKey(tx, owner, { key, start });
    if (found !== null) return found;
  }
  const named = input.name === undefined ? null : await tx.sessions.openByName(order.parentId, input.name);
  if (named !== null) return named;
  const lost = await tx.sessions.replyLost(order.parentId, start.inputHash, order.now - REPLY_LOST_MS);
  // This reply replaces the lost one. After it, another equal spawn starts a new child.
  if (lost !== null) await tx.sessions.patch(lost.id, { replyLostAt: null });
  return lost;
}

async function byKey(
  reads: Pick<Reads, "sessions">,
  owner: string,
  { key, start }: { key: string; start: Start },
): Promise<SessionRecord | null> {
  const found = await reads.sessions.byKey(owner, key);
  if (found !== null && found.keyHash !== start.inputHash) refuseReusedKey(key);
  return found;
}

function keysOf(
  owner: string,
  key: string | null,
  start: Start,
): Pick<SessionRecord, "key" | "keyCaller" | "keyHash"> {
  return { key, keyCaller: key === null ? null : owner, keyHash: start.inputHash };
}

async function refuseLimit(
  deps: OperationDeps,
  tx: Tx,
  {
    parent,
    now,
    steps,
    counts,
  }: { parent: SessionRecord; now: number; steps: number; counts: Effective["counts"] },
): Promise<void> {
  // The limit on children comes from the parent's folder; all other limits come from the child's folder.
  const { childrenMax } = lowered(deps.config.limits, parent.effective.counts);
  const limits = { ...lowered(deps.config.limits, counts), childrenMax };
  const children = await tx.sessions.openChildren(parent.id);
  const refusal = spawnLimit(
    {
      parentDepth: parent.depth,
      openChildren: children.map((child) => ({ name: child.name ?? child.shortId })),
      openSessions: await tx.sessions.openCount(parent.rootId),
      spawnsLastMinute: await tx.sessions.spawnedSince(parent.rootId, now - 60_000),
      spawnsEver: (await tx.tree.byId(parent.rootId))?.spawnCount ?? 0,
      steps,
    },
    limits,
  );
  if (refusal !== null) throw new Refusal(refusal.code, refusal.message, refusal.details);
}

async function requireSpawner(
  deps: OperationDeps,
  caller: CallerContext,
  parent: SessionRecord,
): Promise<void> {
  if (parent.endedAt !== null) throw parentEnded();
  if (caller.kind !== "session" || caller.id === parent.id) return;
  if (await isBelow(deps.store.read, parent, caller.id)) return;
  throw new Refusal(
    "not_a_child",
    `You may spawn under yourself or those below you, and ${describe(parent)} is neither.`,
  );
}

function parentEnded(): Refusal {
  return new Refusal(
    "parent_ended",
    "The session that would be the parent has ended; it can have no more children.",
  );
}

export async function spawnReply(
  deps: OperationDeps,
  session: SessionRecord,
  of: { existing: boolean; bytes: number; asked: Effective["inherit"] },
): Promise<SpawnOutput> {
  const { read } = deps.store;
  const fresh = (await read.sessions.byId(session.id)) ?? session;
  const running = await read.turns.slotsHeld(deps.config.node);
  const before = await read.sessions.readyBefore(deps.config.node, session.id);
  const turn = await read.turns.running(session.id);
  const isQueued = turn === null && fresh.roundOpen && running + before >= deps.config.limits.turnsMax;
  const siblings = session.parentId === null ? [] : await read.sessions.openChildren(session.parentId);
  return {
    session: await viewOne(deps, fresh),
    status: isQueued ? "queued" : "running",
    existing: of.existing,
    effective: session.effective,
    inherited: { bytes: of.bytes, why: whyNothing(deps, session, of) },
    childrenOpen: siblings.length,
    childrenMax: deps.config.limits.childrenMax,
    queuedBehind: isQueued ? before : 0,
    metering: await meteringOf(deps, fresh),
    turnsMax: deps.config.limits.turnsMax,
  };
}

const EXISTING = { existing: true, bytes: 0, asked: "none" } as const;

/** Says why a child inherited no context from its parent; null if there is nothing to explain. */
function whyNothing(
  deps: OperationDeps,
  session: SessionRecord,
  of: { existing: boolean; asked: Effective["inherit"] },
): string | null {
  if (of.existing || session.parentId === null || session.effective.inherit !== "none") return null;
  if (of.asked !== "none") return "its parent has said and done nothing yet";
  return deps.config.inheritContext ? null : "the configuration has inheritContext off";
}

/**
 * Returns how often the budget can be checked: after each call, or only after a whole turn if usage or cost
 * is not known earlier.
 */
async function meteringOf(deps: OperationDeps, session: SessionRecord): Promise<"call" | "turn"> {
  const node = await deps.store.nodes.byName(session.node);
  const agent = node?.agents.find((each) => each.name === session.agent);
  const { limits, model } = session.effective;
  const hasPrice = model !== null && Object.hasOwn(deps.config.prices, model);
  const isCostKnown = limits["usd"] === undefined || agent?.metersCost === true || hasPrice;
  return agent?.metersCalls === true && isCostKnown ? "call" : "turn";
}
