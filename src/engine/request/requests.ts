import path from "node:path";
import type { AgentAnswer, AgentRequest } from "../../drivers/port.ts";
import { Refusal } from "../../contract/refusal.ts";
import { oneLine } from "../../text/fence.ts";
import { noteAsked } from "../../kernel/form-entry.ts";
import { raise } from "../../kernel/trigger.ts";
import {
  type SessionRecord,
  STALE,
  type Stale,
  type TriggerRecord,
  type TurnRecord,
} from "../../store/port/store.ts";
import { isInside, realPathOf } from "../../system/folder.ts";
import { answerPlan, planPayload } from "./plan-request.ts";
import { answersTo } from "./form-answer.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";
import { excerpt } from "../../secrets/redact.ts";

/**
 * Answers an agent's request. If the session's permission mode does not decide it, raises a trigger, as for a
 * question asked through our tools. The trigger is withdrawn when the process is gone.
 */
export async function answerRequest(
  runtime: Runtime,
  slot: AgentSlot,
  request: AgentRequest,
): Promise<AgentAnswer> {
  // A request is a sign of work. What the agent does once it is answered must not be done again after a crash.
  slot.recorder?.noteWork();
  await slot.recorder?.begun();
  if (request.kind === "permission" && request.ours) return { kind: "allow" };
  const decided = byMode(slot.session, request);
  if (decided !== null) return noted(slot, request, decided);
  const { requestsMax } = runtime.deps.config.limits;
  if (slot.requests.size >= requestsMax) return refusedAtLimit(slot, request, requestsMax);
  let answer: TriggerRecord["answer"];
  try {
    const trigger = await slot.requests.raising(() => raiseRequest(runtime, slot, request));
    // Another process has taken over the session, so this one could not receive an answer.
    if (trigger === STALE) return { kind: "deny" };
    const closed = await answered(runtime, slot, trigger);
    answer = closed.answer;
    if (request.kind === "plan") return await answerPlan(runtime, slot, closed);
  } catch (error) {
    // The agent waits for an answer even after an error, so it always gets one.
    if (error instanceof Refusal && error.code === "limit_requests")
      return refusedAtLimit(slot, request, requestsMax);
    const about = { err: error, sessionId: slot.session.id };
    runtime.deps.log.error(about, "agent request could not be raised; denying it");
    answer = null;
  }
  if (request.kind === "question") {
    if (answer === null) return noted(slot, request, { kind: "deny" });
    return { kind: "answer", answers: answersTo(request.questions, answer) };
  }
  return noted(slot, request, { kind: answer?.action === "allow" ? "allow" : "deny" });
}

/** Denies a request. The protocol has no field for the reason, so a notice gives the reason once per turn. */
function refusedAtLimit(slot: AgentSlot, request: AgentRequest, max: number): AgentAnswer {
  const { recorder } = slot;
  if (recorder !== null && !stated.has(recorder)) {
    stated.add(recorder);
    recorder.notice(
      `${max} requests are waiting for an answer; further requests are denied until one is answered`,
    );
  }
  noteDenied(slot, request);
  return { kind: "deny" };
}

/** Turns whose transcript already states that requests are denied at the limit. */
const stated = new WeakSet<object>();

/** Returns the answer that follows from the permission mode; null if a parent or a person must decide. */
function byMode(session: SessionRecord, request: AgentRequest): AgentAnswer | null {
  if (request.kind !== "permission") return null;
  const mode = session.effective.permission;
  if (mode === "full") return { kind: "allow" };
  if (mode === "read-only") return { kind: "deny" };
  return mode === "workspace" && isFileWork(session.cwd, request) ? { kind: "allow" } : null;
}

/**
 * Whether a request only reads or changes files inside the folder; such a request is allowed without asking.
 * Requests to run a command never qualify, because a command may touch files that it does not name.
 */
export function isFileWork(folder: string, request: AgentRequest & { kind: "permission" }): boolean {
  const { command, risk, paths } = request;
  if (command !== null || (risk !== "read" && risk !== "change")) return false;
  // Real paths, because a link inside the folder may point out of it.
  const real = realPathOf(folder);
  return paths.length > 0 && paths.every((each) => isInside(realPathOf(path.resolve(folder, each)), real));
}

function noted(slot: AgentSlot, request: AgentRequest, answer: AgentAnswer): AgentAnswer {
  if (answer.kind !== "deny") return answer;
  noteDenied(slot, request);
  slot.recorder?.notice(`denied: ${oneLine(excerpt(wordsOf(request), DENIED_CHARS_MAX))}`);
  return answer;
}

/** Maximum number of denials counted in a turn. An agent may ask without end. */
const DENIED_MAX = 10_000;
const DENIED_CHARS_MAX = 400;

function noteDenied({ recorder }: AgentSlot, request: AgentRequest): void {
  if (recorder === null || recorder.seen.denied.length >= DENIED_MAX) return;
  recorder.seen.denied.push(request.kind === "permission" ? request.tool : request.kind);
}

function wordsOf(request: AgentRequest): string {
  switch (request.kind) {
    case "permission":
      return request.command ?? request.title;
    case "plan":
      return request.title;
    case "question":
      return request.questions.map((each) => each.text).join("; ");
  }
}

async function raiseRequest(
  runtime: Runtime,
  slot: AgentSlot,
  request: AgentRequest,
): Promise<TriggerRecord | Stale> {
  const { config, now } = runtime.deps;
  // Stores pending entries first, so that the transcript is complete up to the request.
  await slot.recorder?.written();
  return slot.write(async (tx) => {
    const session = (await tx.sessions.byId(slot.session.id)) ?? slot.session;
    const parent = session.parentId === null ? null : await tx.sessions.byId(session.parentId);
    const isPermission = request.kind === "permission";
    const payload =
      request.kind === "plan"
        ? planPayload(request, session, await tx.triggers.ofSession(session.id))
        : payloadOf(session, request);
    const trigger = await raise(tx, session, {
      type: TYPES[request.kind],
      payload,
      default: null,
      fence: slot.lease.fence,
      personOnly: isPermission && parent?.effective.permission !== "full",
      parentMs: config.triggers.parentMs,
      defaultMs: config.triggers.defaultMs,
      openMax: config.limits.requestsMax,
      now: now(),
    });
    await noteAsked(tx, trigger);
    return trigger;
  });
}

const TYPES = { permission: "permission", question: "ask_user_question", plan: "plan_review" } as const;

function payloadOf(
  session: SessionRecord,
  request: AgentRequest & { kind: "permission" | "question" },
): Record<string, unknown> {
  if (request.kind === "question") {
    const questions = request.questions.map(({ id, text, options, multiple }) => ({
      id,
      question: text,
      ...(options.length === 0 ? {} : { options: [...options] }),
      ...(multiple ? { type: "checkbox", multiple } : {}),
    }));
    return { questions };
  }
  const { tool, title, command, risk } = request;
  const [paths, options] = [[...request.paths], [...request.options]];
  const ran = command === null ? {} : { command };
  return { tool, title, ...ran, paths, risk, options, cwd: session.cwd };
}

/**
 * Resolves when anyone has closed the trigger. Until then, the turn does not count towards the limits of
 * running turns and processes.
 */
async function answered(runtime: Runtime, slot: AgentSlot, trigger: TriggerRecord): Promise<TriggerRecord> {
  const turn = slot.recorder?.turn ?? null;
  await changeBlocked(slot, turn, 1);
  const closed = await slot.requests.closed(runtime.deps, trigger, () => slot.isEnding);
  await changeBlocked(slot, turn, -1);
  await slot.write((tx) => tx.triggers.seen(trigger.id, runtime.deps.now()));
  return closed;
}

/**
 * Changes the turn's count of blocking requests. Retries during a store outage; otherwise an answer could
 * become a denial, or the turn could stay blocked.
 */
async function changeBlocked(slot: AgentSlot, turn: TurnRecord | null, by: 1 | -1): Promise<void> {
  if (turn === null) return;
  await slot.write(async (tx) => {
    const row = await tx.turns.byId(turn.id);
    if (row === null) return;
    await tx.turns.patchRunning(turn.id, turn.fence, { blocked: Math.max(0, row.blocked + by) });
    tx.wake(turn.sessionId);
  });
}
