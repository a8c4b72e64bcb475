import { deliveryIdsIn } from "../../domain/callback.ts";
import { mayBeginAfresh, mayResume, type Recovery, recoveryOf } from "../../domain/recovery.ts";
import { appendEntries } from "../../kernel/entry.ts";
import { withdrawSilence } from "../../kernel/park.ts";
import { withdrawOf } from "../../kernel/trigger.ts";
import type { Replay } from "../../drivers/port.ts";
import { oneLine } from "../../text/fence.ts";
import {
  type LeaseRecord,
  type MessageRecord,
  type SessionRecord,
  STALE,
  type Stale,
  type Tx,
  type TurnRecord,
} from "../../store/port/store.ts";
import { endBackground } from "../background.ts";
import { appendMessages, landInTranscript, render } from "../turn/claim.ts";
import type { ProcessIdentity } from "../../system/process.ts";
import { closeLease, fenceOf, newProcessLease, type ProcessLease } from "../agent/process-lease.ts";
import type { AgentStart } from "../agent/start.ts";
import { AgentSlot, type Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";
import { replaySeen } from "./replay-seen.ts";
import { endTurn, type TurnEnd } from "../turn/settle.ts";
import { converse, deliveredIn, endOfStart, ensureAgent, loadAgent } from "../turn/turn.ts";

const ADOPT_MS = 30_000;
const TOGETHER = 64;

/** Runs after a start: ends the processes of the dead daemon, and settles, restarts or resumes its turns. */
export async function recover(runtime: Runtime): Promise<void> {
  const { store } = runtime.deps;
  await reapLeases(runtime);
  const turns = await store.read.turns.runningOn(store.node);
  const cut = turns.filter((turn) => !runtime.slots.has(turn.sessionId));
  await together(cut, (turn) => tryRecover(runtime, turn));
  // Background work has ended with its process.
  for (const session of await store.read.sessions.inBackground(store.node)) {
    if (!runtime.slots.has(session.id)) await endBackground(runtime.deps, session);
  }
}

/** Recovers turns that still have no slot long after their claim. Only a bug leaves such turns. */
export async function adoptLost(runtime: Runtime): Promise<void> {
  const { store, now, log } = runtime.deps;
  for (const turn of await store.read.turns.runningOn(store.node)) {
    const isYoung = now() - turn.startedAt < ADOPT_MS;
    if (runtime.isStopping || runtime.isHalted) return;
    if (isYoung || runtime.slots.has(turn.sessionId)) continue;
    const { id: turnId, sessionId } = turn;
    log.warn({ turnId, sessionId }, "found a running turn without a process; recovering it");
    await tryRecover(runtime, turn);
  }
}

async function reapLeases(runtime: Runtime): Promise<void> {
  const { store, reaper, log } = runtime.deps;
  const leases = await store.read.leases.ofNode(store.node);
  const dead = leases.filter((lease) => !runtime.slots.has(lease.sessionId));
  if (dead.length === 0) return;
  const { killed, left } = await reaper.reap(
    dead.map((lease) => lease.id),
    dead.flatMap((lease) => lease.descendants),
  );
  if (killed.length > 0) log.info({ killed: killed.length }, "ended processes of an earlier daemon");
  if (left.length > 0) log.warn({ left }, "could not end processes of an earlier daemon");
  if (left.length === 0) {
    await together(dead, (lease) => dropLease(runtime, lease, left));
    return;
  }
  // Some processes could not be stopped. Each lease is reaped again alone, to find out which lease they
  // belong to.
  for (const lease of dead)
    await dropLease(runtime, lease, (await reaper.reap([lease.id], lease.descendants)).left);
}

/** Handles items in parallel batches, so their writes share commits and do not each wait for the disk. */
async function together<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += TOGETHER) {
    await Promise.all(items.slice(at, at + TOGETHER).map(work));
  }
}

async function dropLease(
  runtime: Runtime,
  lease: LeaseRecord,
  left: readonly ProcessIdentity[],
): Promise<void> {
  // No fence: the lease's process is dead, and the write changes only the row with this lease's fence, never
  // a newer lease.
  await runtime.deps.store.write(lease.rootId, async (tx) => {
    await closeLease(tx, { session: lease.sessionId, fence: lease.fence }, left);
  });
}

/** Recovers a turn. An error does not keep other turns from recovering; `adoptLost` tries again later. */
async function tryRecover(runtime: Runtime, turn: TurnRecord): Promise<void> {
  try {
    await recoverTurn(runtime, turn);
  } catch (error) {
    const { id: turnId, sessionId } = turn;
    runtime.deps.log.error({ err: error, turnId, sessionId }, "recovering a turn failed");
  }
}

async function recoverTurn(runtime: Runtime, turn: TurnRecord): Promise<void> {
  const taken = await takeOver(runtime, turn);
  if (taken === null) return;
  const { session, lease, recovery } = taken;
  runtime.deps.log.info({ sessionId: session.id, turnId: turn.id, recovery }, "recovering a turn");
  const slot = new AgentSlot(runtime, { session, lease, turn: taken.turn });
  runtime.deps.reached("resume.claimed");
  slot.follow(goOn(runtime, slot, taken));
}

interface TakenOver {
  readonly session: SessionRecord;
  readonly turn: TurnRecord;
  readonly lease: ProcessLease;
  readonly recovery: Recovery;
  /** The agent had begun to work in the interrupted attempt. */
  readonly hasBegun: boolean;
}

/**
 * Takes over the turn under a new fence, so that late writes of the old process are refused. The kind of
 * recovery is decided under the lock, because a cancel may have come since the turn was found.
 */
async function takeOver(runtime: Runtime, found: TurnRecord): Promise<TakenOver | null> {
  const { deps } = runtime;
  const taken = await deps.store.write(found.rootId, fenceOf(found), async (tx) => {
    const session = await tx.sessions.byId(found.sessionId);
    const row = await tx.turns.byId(found.id);
    if (session === null || row?.status !== "running") return null;
    const recovery = recoveryFor(runtime, session, row);
    await withdrawOf(tx, session.id, { fence: row.fence, now: deps.now() });
    // The silent process is gone, so the report of its silence no longer applies.
    await withdrawSilence(tx, session, deps.now());
    const lease = await newProcessLease(deps, tx, session);
    await cutDraft(tx, session.id);
    const { entryCount: attemptFrom } = (await tx.sessions.byId(session.id))!;
    const hasBegun = await tx.drafts.hasBegun(row);
    const patch = {
      fence: lease.fence,
      boot: deps.store.boot,
      attempt: row.attempt + 1,
      attemptsBegun: row.attemptsBegun + (hasBegun ? 1 : 0),
      attemptFrom,
      blocked: 0,
    };
    await tx.turns.patchRunning(row.id, row.fence, patch);
    return { session, turn: { ...row, ...patch }, lease, recovery, hasBegun };
  });
  return taken === STALE ? null : taken;
}

/** Turns the message that a stopped daemon or process left unfinished into an entry marked `cut`. */
async function cutDraft(tx: Tx, sessionId: string): Promise<void> {
  const open = await tx.drafts.ofSession(sessionId);
  if (open === null) return;
  await tx.drafts.remove(sessionId);
  const { turnId, author, kind, body, isSubagent, at } = open;
  const entry = { turnId, author, kind, body: { text: body.text, cut: true }, isSubagent, at };
  await appendEntries(tx, sessionId, [entry]);
}

function recoveryFor(runtime: Runtime, session: SessionRecord, turn: TurnRecord): Recovery {
  const agent = runtime.agents.get(session.agent);
  return recoveryOf({
    sessionEnded: session.endedAt !== null,
    stopAsked: turn.stopBy !== null,
    agentSessionId: session.agentSessionId,
    canLoad: agent?.load === true && agent.installed,
    kind: turn.kind,
  });
}

async function goOn(runtime: Runtime, slot: AgentSlot, { recovery, hasBegun }: TakenOver): Promise<void> {
  const recorder = slot.recorder!;
  recorder.hasBegun = hasBegun;
  await replaySeen(runtime.deps, recorder);
  if (recovery === "restart" || recovery === "load") await resume(runtime, slot, recovery);
  else await endTurn(runtime, slot, { recorder, end: endWithout(recovery, slot.session, recorder.turn) });
}

async function resume(runtime: Runtime, slot: AgentSlot, how: "restart" | "load"): Promise<void> {
  const recorder = slot.recorder!;
  const started = await (how === "load"
    ? loadOrBegin(runtime, slot, recorder)
    : ensureAgent(runtime, slot, recorder));
  if (!started.ok) {
    const isLost = how === "load" && !started.isUnwanted;
    const end = isLost ? unknowable(NOT_LOADED) : endOfStart(started);
    await endTurn(runtime, slot, { recorder, end });
    return;
  }
  runtime.deps.reached("resume.loaded");
  // If the slot was released in the meantime, the next recovery takes over the turn.
  if (!slot.isIn(recorder)) return;
  const { replay } = started.agent;
  const { attemptsBegun } = recorder.turn;
  const toolCalls = recorder.toolUseCount + (await toolCallsOf(runtime, recorder.turn, replay));
  if (!mayResume({ attemptsBegun, toolCalls })) {
    await endTurn(runtime, slot, {
      recorder,
      end: { ...unknowable(RESUMED_TWICE), record: deliveredIn(replay) },
    });
    return;
  }
  const text = await readBack(runtime, recorder.turn, replay);
  // If another process has taken over the turn, nothing is sent, and `endTurn` writes nothing.
  const end = text === STALE ? unknowable(NOT_LOADED) : await converse(runtime, slot, text);
  await endTurn(runtime, slot, { recorder, end });
}

/**
 * Loads the agent's session. If the process dies while loading, tries once more, because the agent's session
 * may be intact. See `mayBeginAfresh` for when the turn begins anew instead.
 */
async function loadOrBegin(runtime: Runtime, slot: AgentSlot, recorder: Recorder): Promise<AgentStart> {
  let started = await loadAgent(runtime, slot);
  const isPassing = !started.ok && started.loadFailure === null && !started.isUnwanted;
  if (isPassing && !slot.isEnding) started = await loadAgent(runtime, slot);
  if (started.ok || slot.isEnding) return started;
  return mayBeginAfresh(started.loadFailure, recorder.turn) ? ensureAgent(runtime, slot, recorder) : started;
}

/** Returns how many tool calls the agent's own record has for this turn. */
async function toolCallsOf(runtime: Runtime, turn: TurnRecord, replay: Replay | null): Promise<number> {
  if (replay === null) return 0;
  const messages = await runtime.deps.store.read.messages.ofTurn(turn.id);
  const ids = new Set(messages.map((message) => message.deliveryId));
  const first = replay.userTexts.findIndex((text) => deliveryIdsIn(text).some((id) => ids.has(id)));
  const calls = first === -1 ? [] : replay.toolCalls.slice(first);
  return calls.reduce((sum, count) => sum + count, 0);
}

/**
 * Marks messages found in the replay as landed. Returns the prompt that resumes the turn and repeats the
 * messages that were not found.
 */
async function readBack(runtime: Runtime, turn: TurnRecord, replay: Replay | null): Promise<string | Stale> {
  const { deps } = runtime;
  const found = deliveredIn(replay);
  return deps.store.write(turn.rootId, fenceOf(turn), async (tx) => {
    const session = (await tx.sessions.byId(turn.sessionId))!;
    const messages = await tx.messages.ofTurn(turn.id);
    const missing: MessageRecord[] = [];
    for (const message of messages) {
      if (message.status !== "taken") continue;
      if (found.has(message.deliveryId)) await landInTranscript(tx, message, deps.now());
      else if (message.carrier !== "tool") missing.push(message);
    }
    await markLostReplies(tx, turn, { results: replay?.toolResults ?? [], now: deps.now() });
    const { text, bodies } = await render(tx, session, missing);
    const unlisted = bodies.filter(({ message }) => message.entryIndex === null);
    await appendMessages(tx, turn, { bodies: unlisted, now: deps.now() });
    const hasBegun = messages.length > missing.length;
    if (!hasBegun) return text;
    const children = await tx.sessions.children(session.id);
    return resumePrompt(children, text);
  });
}

/**
 * Makes the prompt that continues a turn after the daemon died; no agent continues without a prompt.
 * `missing` has the rendered messages that had not reached the agent.
 */
function resumePrompt(children: readonly SessionRecord[], missing: string): string {
  const lines = [
    "[Kinfold] Your turn was cut: the daemon or the computer stopped and has started again. Continue it from where it stopped.",
    "Calls marked interrupted or aborted may have taken effect: check them before you repeat them.",
  ];
  const names = children.map(({ name, shortId }) => `"${oneLine(name ?? shortId, 40)}" (${shortId})`);
  if (names.length > 0) lines.push(`Children already started: ${names.join(", ")}. Do not spawn them again.`);
  if (missing !== "") lines.push("These messages had not reached you:", "", missing);
  return lines.join("\n");
}

/**
 * Marks children whose spawn got no reply. If the agent repeats an identical spawn within ten minutes, it
 * gets the marked child.
 */
async function markLostReplies(
  tx: Tx,
  turn: TurnRecord,
  known: { results: readonly string[]; now: number },
): Promise<void> {
  for (const child of await tx.sessions.children(turn.sessionId)) {
    const isOfTurn = child.spawnTurnId === turn.id && child.replyLostAt === null;
    if (!isOfTurn || known.results.some((text) => text.includes(child.shortId))) continue;
    await tx.sessions.patch(child.id, { replyLostAt: known.now });
  }
}

function endWithout(recovery: "settle" | "interrupt", session: SessionRecord, turn: TurnRecord): TurnEnd {
  if (recovery === "interrupt") return unknowable(NOT_LOADED);
  const end = { outcome: "cancelled", reason: turn.stopNote, usage: null, background: false } as const;
  // The agent's session id is stored before its first prompt is sent, so without an id no prompt was sent.
  const reach = session.agentSessionId === null ? "unsent" : "unanswered";
  return { ...end, stopReason: "cancelled", reach };
}

const RESUMED_TWICE = "it was resumed twice already";
const NOT_LOADED = "this agent cannot be resumed by itself";

function unknowable(why: string): TurnEnd {
  const reason = `the computer or the daemon stopped and ${why}`;
  const end = { outcome: "interrupted", reason, usage: null, background: false } as const;
  return { ...end, stopReason: "unknowable", reach: "unanswered" };
}
