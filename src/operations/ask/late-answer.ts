import type { Answer } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import { redactBriefly } from "../../secrets/redact-long.ts";
import { oneLine } from "../../text/fence.ts";
import { askedText } from "../../kernel/trigger.ts";
import type { Reads, TriggerRecord } from "../../store/port/store.ts";

/**
 * Returns whether this answer repeats the recorded one. A caller that got no reply sends its answer again
 * with an idempotency key. Compares redacted texts, because the recorded answer is redacted.
 */
export function isRepeated(trigger: TriggerRecord, answer: Answer, key: string | undefined): boolean {
  const { answer: recorded, status } = trigger;
  if (key === undefined || status !== "answered" || recorded === null) return false;
  return wordsOf(recorded) === wordsOf(answer);
}

function wordsOf({ callerId, action, response, answers }: Answer): string {
  return JSON.stringify(redactBriefly([callerId, action, response, answers]));
}

/** Returns why a trigger can no longer be answered: who answered what, or which trigger asks again. */
export async function tooLate(reads: Pick<Reads, "triggers">, trigger: TriggerRecord): Promise<Refusal> {
  const { status } = trigger;
  if (status === "withdrawn") return withdrawn(await successorOf(reads, trigger), status);
  const by = trigger.answer?.by ?? "nobody";
  const what = trigger.answer?.action ?? trigger.answer?.response ?? status;
  return new Refusal(
    "already_answered",
    `It was answered already, by ${oneLine(by)}: ${oneLine(redactBriefly(String(what)), 200)}. Nothing was changed.`,
    { status, answer: redactBriefly(trigger.answer) },
  );
}

function withdrawn(successor: TriggerRecord | null, status: string): Refusal {
  const gone = "It was withdrawn: the process that asked is gone, or the session was cancelled.";
  if (successor === null) {
    return new Refusal("already_answered", `${gone} If it asks again, you will get a message.`, { status });
  }
  const id = shortId(successor.id);
  return new Refusal(
    "already_answered",
    `${gone} It asks again as "${id}" (${oneLine(askedText(successor))}): answer that one, respond_to_trigger("${id}", …).`,
    { status, successorId: successor.id },
  );
}

/** Returns the open trigger that asks the same question again, else the newest open trigger of this type. */
async function successorOf(
  reads: Pick<Reads, "triggers">,
  trigger: TriggerRecord,
): Promise<TriggerRecord | null> {
  const open = (await reads.triggers.open({ sessionId: trigger.sessionId })).filter(
    (each) => each.type === trigger.type && each.createdAt >= trigger.createdAt,
  );
  const isSame = (each: TriggerRecord): boolean => askedText(each) === askedText(trigger);
  return open.find(isSame) ?? open.at(-1) ?? null;
}
