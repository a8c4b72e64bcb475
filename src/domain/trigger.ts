import { BLOCKING_TYPES } from "../contract/blocking-type.ts";

/**
 * A parent's time to answer starts when its turn takes the question, but at the latest this long after the
 * question was raised.
 */
export const UNTAKEN_MS = 2 * 60_000;

export interface DeadlineFacts {
  readonly type: string;
  readonly raisedAt: number;
  readonly takenAt: number | null;
  readonly toPerson: boolean;
  readonly default: string | null;
  readonly parentMs: number;
  readonly defaultMs: number;
}

/** Returns when a person is asked too, and when the default answer applies; null stands for never. */
export function deadlinesOf(facts: DeadlineFacts): { personAt: number | null; defaultAt: number | null } {
  if (!isBlocking(facts.type)) return { personAt: null, defaultAt: null };
  const start = Math.min(facts.takenAt ?? Infinity, facts.raisedAt + UNTAKEN_MS);
  const hasDefault = facts.default !== null || facts.type === "permission";
  return {
    personAt: facts.toPerson ? null : start + facts.parentMs,
    defaultAt: hasDefault ? facts.raisedAt + facts.defaultMs : null,
  };
}

export function isBlocking(type: string): boolean {
  return (BLOCKING_TYPES as readonly string[]).includes(type);
}

/** True for triggers that only report the end or the error of a session. */
export function needsNoAnswer(type: string): boolean {
  return type === "session_complete" || type === "session_error";
}

/** Returns the actions that may answer a trigger of this type; empty means free text. */
export function actionsOf(type: string): readonly string[] {
  return ACTIONS.get(type) ?? [];
}

const ACTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ["plan_review", ["approve", "edit", "cancel"]],
  ["permission", ["allow", "deny"]],
  ["session_complete", ["followUp", "ack"]],
]);

export interface AnswerInput {
  readonly action: string | null;
  readonly response: string | null;
  readonly answers: Record<string, unknown> | null;
}

export function answerProblem(type: string, answer: AnswerInput): string | null {
  const actions = actionsOf(type);
  const hasText = (answer.response ?? "").trim() !== "" || answer.answers !== null;
  if (actions.length === 0) {
    if (answer.action !== null)
      return `${type} takes no action, so "${answer.action}" is not allowed. Answer with a response in words.`;
    return hasText ? null : "The answer is empty. Answer with a response in words.";
  }
  if (answer.action === null) return `An action is required. Allowed: ${list(actions)}.`;
  if (!actions.includes(answer.action))
    return `"${answer.action}" is not an action for ${type}. Allowed: ${list(actions)}.`;
  const needsText = answer.action === "edit" || answer.action === "followUp";
  return needsText && !hasText
    ? `The action "${answer.action}" needs a response that says what to change or to do.`
    : null;
}

function list(actions: readonly string[]): string {
  return actions.map((action) => `"${action}"`).join(", ");
}
