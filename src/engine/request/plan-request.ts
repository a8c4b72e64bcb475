import type { AgentAnswer, AgentRequest } from "../../drivers/port.ts";
import { admit } from "../../kernel/admit.ts";
import { admitAnswer } from "../../kernel/trigger.ts";
import type { SessionRecord, TriggerRecord } from "../../store/port/store.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";

/** Makes the payload of a plan review. A plan that is only a list becomes steps; others are kept as text. */
export function planPayload(
  plan: AgentRequest & { kind: "plan" },
  session: SessionRecord,
  earlier: readonly TriggerRecord[],
): Record<string, unknown> {
  const reviews = earlier.filter((each) => each.type === "plan_review" && each.round === session.round);
  const revision = reviews.length + 1;
  const lines = plan.text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const steps = lines.map((line) => /^(?:\d+[.)]|[-*])\s+(.+)$/.exec(line)?.[1] ?? null);
  const isList = steps.length > 0 && steps.every((step) => step !== null);
  return {
    title: plan.title,
    steps: isList ? steps : [],
    ...(isList ? {} : { description: plan.text }),
    revision,
  };
}

/**
 * Answers a plan review. A vendor's plan mode accepts only yes or no, so requested changes are sent as the
 * session's next message. The approval of a plan in a `read-only` session is sent the same way, because a yes
 * would switch the agent out of plan mode.
 */
export async function answerPlan(
  { deps }: Runtime,
  slot: AgentSlot,
  trigger: TriggerRecord,
): Promise<AgentAnswer> {
  const { answer } = trigger;
  if (answer === null) return { kind: "deny" };
  const isReader = slot.session.effective.permission === "read-only";
  if (answer.action === "approve" && !isReader) return { kind: "allow" };
  const isSentBack = answer.action !== "cancel";
  if (slot.recorder !== null) slot.planReviewed(slot.recorder, isSentBack);
  if (!isSentBack) return { kind: "deny" };
  const now = deps.now();
  await deps.store.write(trigger.rootId, slot.lease, async (tx) => {
    const session = await tx.sessions.byId(trigger.sessionId);
    if (session === null || session.endedAt !== null) return;
    if (answer.action === "edit") return admitAnswer(tx, session, { trigger, answer, now });
    const sender = { senderKind: "daemon", senderId: null } as const;
    await admit(tx, session, { now, kind: "notice", ...sender, delivery: "followUp", body: ONLY_READS });
  });
  return { kind: "deny" };
}

const ONLY_READS =
  "[Kinfold] Your plan was approved. This session is read-only and stays so: do not carry the plan out. Give the plan as your report and end your turn.";
