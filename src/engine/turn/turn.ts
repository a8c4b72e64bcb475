import type { AgentHandle, PromptEnd, Replay } from "../../drivers/port.ts";
import { deliveryIdsIn, withPromptContext } from "../../domain/callback.ts";
import { isWork } from "../../domain/landing.ts";
import { providerError, providerReason } from "../../domain/provider-error.ts";
import { oneLine } from "../../text/fence.ts";
import type { MessageRecord, TurnRecord } from "../../store/port/store.ts";
import { autonomous, takeEarly } from "./autonomous.ts";
import { startAgent, type AgentStart, UNWANTED } from "../agent/start.ts";
import { forkOf, firstPromptContext } from "./first-prompt.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";
import { answerRequest } from "../request/requests.ts";
import { meter } from "../usage/reservation.ts";
import { endTurn, type TurnEnd } from "./settle.ts";
import { endSteering, steerQueued } from "./steer.ts";
import { UsageMeter } from "../usage/meter.ts";
import { excerpt } from "../../secrets/redact.ts";

export async function runTurn(
  runtime: Runtime,
  slot: AgentSlot,
  order: { recorder: Recorder; text: string },
): Promise<void> {
  const { recorder } = order;
  for (const update of takeEarly(slot)) recorder.record(update);
  const started = await ensureAgent(runtime, slot, recorder);
  const end = started.ok ? await converse(runtime, slot, order.text) : endOfStart(started);
  await endTurn(runtime, slot, { recorder, end });
}

export async function ensureAgent(
  runtime: Runtime,
  slot: AgentSlot,
  recorder: Recorder,
): Promise<AgentStart> {
  const { agent } = slot;
  if (agent !== null && !slot.hasExited(agent)) return { ok: true, agent };
  // The process exited while idle. Ends the processes that it left behind, then starts a new one.
  if (agent !== null) {
    await agent.stop(0);
    if (!slot.restart(recorder)) return UNWANTED;
  }
  return slot.start(() => startOrLoad(runtime, slot));
}

async function startOrLoad(runtime: Runtime, slot: AgentSlot): Promise<AgentStart> {
  const canLoad = runtime.agents.get(slot.session.agent)?.load === true;
  const load = canLoad ? slot.session.agentSessionId : null;
  const started = await open(runtime, slot, { load, fork: await forkOf(runtime.deps, slot.session) });
  if (started.ok || started.loadFailure === null || slot.isEnding) return started;
  slot.recorder?.notice(
    `the earlier conversation could not be loaded (${oneLine(excerpt(started.reason, REASON_MAX))}); a new one starts`,
  );
  return open(runtime, slot, { load: null });
}

function open(
  runtime: Runtime,
  slot: AgentSlot,
  conversation: { load: string | null; fork?: string | null },
): Promise<AgentStart> {
  const { session, lease } = slot;
  return startAgent(runtime.deps, session, {
    lease,
    ...conversation,
    isWanted: () => !slot.isEnding,
    onUpdate(update) {
      const { recorder } = slot;
      if (recorder !== null && !recorder.isOver) {
        recorder.record(update);
        if (update.kind === "usage") meter(runtime, slot);
        slot.usageMeter?.onUpdate(update);
      } else if (slot.agent !== null && !slot.isEnding) autonomous(runtime, slot, update);
    },
    onRequest: (request) => answerRequest(runtime, slot, request),
  });
}

/** Loads the agent's conversation; does not start a new one if that fails. */
export async function loadAgent(runtime: Runtime, slot: AgentSlot): Promise<AgentStart> {
  return slot.start(() => open(runtime, slot, { load: slot.session.agentSessionId }));
}

/** Sends the prompt and waits until the agent is done with it. Sends nothing if a stop came first. */
export async function converse(runtime: Runtime, slot: AgentSlot, text: string): Promise<TurnEnd> {
  const { agent, recorder } = slot;
  if (agent === null || recorder === null) return notStarted("the agent is gone");
  const { reservedTokens, reservedUsd } = recorder.turn;
  const hasBudget = reservedTokens !== null || reservedUsd !== null;
  const usageMeter = hasBudget ? await UsageMeter.begin(runtime, slot, recorder) : null;
  const isWanted = await isStillWanted(runtime, recorder.turn);
  if (slot.isEnding || slot.isStopping || !isWanted) {
    return endOfStart({ isUnwanted: true, reason: "it was stopped before it began" });
  }
  const wasIdle = slot.wasPrompted(agent);
  const end = await promptEnd(runtime, slot, { agent, recorder, usageMeter, text });
  if (end.exit !== null) slot.noteExit(agent);
  const record = end.exit === null ? null : await readBackDead(runtime, slot, recorder);
  // The process had died unnoticed while it was idle, so a new process gets the prompt.
  if (record?.size === 0 && wasIdle && !recorder.hasBegun) return converse(runtime, slot, text);
  if (slot.isEnding || slot.hasExited(agent)) await slot.end();
  const isOver = end.stopReason !== "end_turn" || slot.isEnding;
  const background = isOver ? false : await agent.background(recorder.turn.startedAt);
  const { stopReason, usage, isUsagePartial = false, limitedUntil = null } = end;
  const reach = end.isAnswered ? "answered" : "unanswered";
  const facts = { stopReason, reach, record, usage, isUsagePartial, background, limitedUntil } as const;
  return { ...facts, reason: reasonOf(end), ...providerEnd(runtime, slot, end) };
}

/** Returns the provider's error in its own words; null if there is none, or if it is a usage limit. */
function providerEnd(
  runtime: Runtime,
  slot: AgentSlot,
  end: PromptEnd,
): Pick<TurnEnd, "provider" | "reason"> | null {
  if (end.stopReason !== "error" || end.error === null || (end.limitedUntil ?? null) !== null) return null;
  const { recorder, session } = slot;
  // Some agents also send the error as a message of their model. That message is not the turn's report.
  if (recorder !== null && recorder.lastText?.trim() === end.error.trim()) recorder.lastText = null;
  const found = providerError(excerpt(end.error, ERROR_MAX), end.errorStatus ?? null);
  const provider = { ...found, sentence: oneLine(found.sentence, SENTENCE_MAX) };
  const title = runtime.agents.get(session.agent)?.title ?? session.agent;
  const howToSignIn = runtime.deps.drivers.get(session.agent)?.howToSignIn ?? null;
  return { provider, reason: providerReason(provider, { title, howToSignIn }) };
}

const SENTENCE_MAX = 140;
/** At most this many characters of an agent's error are read, because it may have any length. */
const ERROR_MAX = 8_000;
const REASON_MAX = 400;

async function promptEnd(
  runtime: Runtime,
  slot: AgentSlot,
  order: { agent: AgentHandle; recorder: Recorder; usageMeter: UsageMeter | null; text: string },
): Promise<PromptEnd> {
  const { agent, recorder, usageMeter, text } = order;
  const context = slot.wasPrompted(agent)
    ? null
    : await firstPromptContext(runtime.deps, slot, recorder.turn);
  slot.notePrompt(agent);
  slot.planReviewed(recorder, false);
  recorder.isOver = false;
  recorder.isPrompted = true;
  recorder.hasBegun = false;
  slot.meterWith(usageMeter);
  usageMeter?.watch();
  const prompting = agent.prompt(context === null ? text : withPromptContext(text, context));
  runtime.deps.reached("prompt.sent");
  void steerQueued(runtime, slot);
  const end = withoutRejection(slot, await prompting);
  await usageMeter?.end();
  slot.meterWith(null);
  return usageMeter?.hasRead === true ? { ...end, isUsagePartial: false } : end;
}

/**
 * Loads the conversation of an agent that died without a reply, because only the agent's own record shows
 * what had reached it. Returns the turn's delivery ids found in the record; null if the record cannot be read
 * or nothing depends on it.
 */
async function readBackDead(
  runtime: Runtime,
  slot: AgentSlot,
  recorder: Recorder,
): Promise<ReadonlySet<string> | null> {
  await endSteering(slot, recorder);
  const canLoad = runtime.agents.get(slot.session.agent)?.load === true;
  const isLeft = (): boolean => slot.isEnding || slot.isStopping || !slot.isIn(recorder);
  if (!canLoad || isLeft() || slot.session.agentSessionId === null) return null;
  const messages = await runtime.deps.store.read.messages.ofTurn(recorder.turn.id);
  const isProven = (message: MessageRecord): boolean =>
    message.status !== "taken" || (message.carrier === "prompt" && recorder.hasBegun && isWork(message.kind));
  if (messages.every(isProven)) return null;
  await slot.agent?.stop(0);
  if (isLeft() || !slot.restart(recorder)) return null;
  const started = await loadAgent(runtime, slot);
  const replay = started.ok ? started.agent.replay : null;
  if (replay === null) return null;
  const found = deliveredIn(replay);
  return new Set(messages.map((message) => message.deliveryId).filter((id) => found.has(id)));
}

export function deliveredIn(replay: Replay | null): ReadonlySet<string> {
  const texts = replay === null ? [] : [...replay.userTexts, ...replay.toolResults];
  return new Set(texts.flatMap((text) => deliveryIdsIn(text)));
}

/**
 * Claude cancels its own turn when its plan is sent back. This counts as a normal end, because the requested
 * changes follow as the next message.
 */
function withoutRejection(slot: AgentSlot, end: PromptEnd): PromptEnd {
  const isOwn = end.stopReason === "cancelled" && slot.isPlanSentBack && !slot.isStopping;
  return isOwn && !slot.isEnding ? { ...end, stopReason: "end_turn" } : end;
}

/** Returns false if a cancel or a stop came while there was no agent to receive it. */
async function isStillWanted(runtime: Runtime, turn: TurnRecord): Promise<boolean> {
  const { read } = runtime.deps.store;
  const session = await read.sessions.byId(turn.sessionId);
  const row = await read.turns.byId(turn.id);
  return session?.endedAt === null && row?.stopBy === null;
}

export function endOfStart(start: { isUnwanted: boolean; reason: string }): TurnEnd {
  return start.isUnwanted ? { ...notStarted(start.reason), outcome: "cancelled" } : notStarted(start.reason);
}

function notStarted(reason: string): TurnEnd {
  const end = { outcome: "failed", reason, usage: null, background: false } as const;
  return { ...end, stopReason: "not_started", reach: "unsent" };
}

/** Returns why the prompt ended, as text for the callback; null after a normal end or a cancel. */
function reasonOf(end: PromptEnd): string | null {
  switch (end.stopReason) {
    case "end_turn":
    case "cancelled":
      return null;
    case "exited": {
      const signal = end.exit?.signal ? ` (signal ${end.exit.signal})` : "";
      return `the agent process exited with code ${end.exit?.code ?? "unknown"}${signal}`;
    }
    case "error":
      return `the agent reported: "${oneLine(excerpt(end.error ?? "an error", REASON_MAX))}"`;
    default:
      return `the agent stopped: ${end.stopReason.replaceAll("_", " ")}`;
  }
}
