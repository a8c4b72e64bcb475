import type { Answer, EntryAuthor } from "../contract/index.ts";
import { answeredInForm, askedInForm } from "../domain/form-text.ts";
import type { TriggerRecord, Tx } from "../store/port/store.ts";
import { appendEntries } from "./entry.ts";
import { boundedText } from "../text/fence.ts";

const TEXT_CHARS_MAX = 64 * 1024;
const FORMS: ReadonlySet<string> = new Set(["ask_user_question", "plan_review"]);

/**
 * Writes a vendor's question or plan into the transcript when its trigger is raised; `noteAnswered` writes
 * the answer. Both travel in the vendor's protocol, so no message or tool call shows them.
 */
export async function noteAsked(tx: Tx, trigger: TriggerRecord): Promise<void> {
  await note(tx, trigger, { author: "agent", text: askedInForm(trigger.payload), at: trigger.createdAt });
}

export async function noteAnswered(
  tx: Tx,
  trigger: TriggerRecord,
  { answer, author, at }: { answer: Answer; author: EntryAuthor; at: number },
): Promise<void> {
  await note(tx, trigger, { author, text: answeredInForm(trigger.payload, answer), at });
}

async function note(
  tx: Tx,
  trigger: TriggerRecord,
  { author, text, at }: { author: EntryAuthor; text: string; at: number },
): Promise<void> {
  if (trigger.fence === null || !FORMS.has(trigger.type)) return;
  const turn = await tx.turns.running(trigger.sessionId);
  const body = { text: boundedText(text, TEXT_CHARS_MAX), input: { triggerId: trigger.id } };
  const of = { turnId: turn?.id ?? null, isSubagent: false, at } as const;
  await appendEntries(tx, trigger.sessionId, [{ ...of, author, kind: "trigger", body }]);
}
