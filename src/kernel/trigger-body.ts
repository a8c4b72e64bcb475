import { renderAnswer, renderTrigger, type TriggerSender } from "../domain/trigger-text.ts";
import type { MessageRecord, SessionRecord, Tx } from "../store/port/store.ts";

export type TriggerMessage = Pick<
  MessageRecord,
  "kind" | "data" | "deliveryId" | "repeated" | "senderId" | "metadata" | "admittedAt"
>;

/** The text of a trigger or an answer, rendered when it is taken; null for every other message. */
export async function triggerBody(
  tx: Tx,
  reader: SessionRecord,
  message: TriggerMessage,
): Promise<string | null> {
  const { data, deliveryId, repeated } = message;
  if (data === null) return null;
  if (message.kind === "trigger") {
    const defaultAt = typeof data["defaultAt"] === "number" ? data["defaultAt"] : null;
    return renderTrigger(String(data["type"]), data["payload"] as Record<string, unknown>, {
      deliveryId,
      repeated,
      sender: await senderOf(tx, reader, message),
      defaultInMs: defaultAt === null ? null : Math.max(0, defaultAt - message.admittedAt),
    });
  }
  if (message.kind !== "answer") return null;
  return renderAnswer({
    deliveryId,
    repeated,
    type: String(data["type"]),
    asked: String(data["asked"] ?? ""),
    by: String(data["by"] ?? ""),
    action: (data["action"] as string | null) ?? null,
    response: (data["response"] as string | null) ?? null,
    answers: (data["answers"] as Record<string, unknown> | null) ?? null,
    isData: data["isData"] === true,
  });
}

async function senderOf(tx: Tx, reader: SessionRecord, message: TriggerMessage): Promise<TriggerSender> {
  const sender = message.senderId === null ? null : await tx.sessions.byId(message.senderId);
  if (sender === null) {
    const name = message.metadata["outside"];
    return { kind: "outside", name: typeof name === "string" ? name : "outside", shortId: null, agent: null };
  }
  const agent = sender.model === null ? sender.agent : `${sender.agent} ${sender.model}`;
  const kind = sender.parentId === reader.id ? "child" : "session";
  return { kind, name: sender.name ?? sender.shortId, shortId: sender.shortId, agent };
}
