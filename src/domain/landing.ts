import type { Carrier, MessageKind } from "../contract/index.ts";

/** A message that a settling turn had taken, with the evidence of whether the agent received it. */
export interface TakenMessage {
  readonly kind: MessageKind;
  readonly carrier: Carrier | null;
  /** Only a steer can be acknowledged. */
  readonly isAcknowledged: boolean;
  readonly reach: Reach;
  /** The agent worked after the prompt was sent: it wrote, thought, planned or called a tool. */
  readonly hasBegun: boolean;
  /** Whether the agent's own record contains the message; null if no record could be read. */
  readonly inRecord: boolean | null;
  readonly isStopped: boolean;
}

/** `unsent`: the agent did not get the prompt. `unanswered`: it may have got it. `answered`: it replied. */
export type Reach = "unsent" | "unanswered" | "answered";

export type Landing =
  | "landed"
  /** Goes back into the inbox, because the agent certainly does not have the message. */
  | "returned"
  /** Goes back into the inbox, marked as repeated, because the agent may have the message. */
  | "repeated"
  /** Void: the message is work, and the turn was stopped before the agent received the message. */
  | "unwanted"
  /** Void: the message is work, and it is unknown whether the agent has it. */
  | "unknown";

/** A message counts as landed only on evidence that the agent has it; how its turn ended is no evidence. */
export function landingOf(message: TakenMessage): Landing {
  if (message.reach === "unsent") return unsent(message);
  if (message.inRecord === true) return "landed";
  switch (message.carrier) {
    case "prompt":
      return ofPrompt(message);
    case "steer":
      return ofSteer(message);
    default:
      // A message in a tool result has landed only if the agent's record contains its id, which is checked
      // above.
      return "repeated";
  }
}

/** Whether a message is work, which must be done only once. Information may be sent again. */
export function isWork(kind: string): boolean {
  return kind === "prompt" || kind === "tell";
}

function ofPrompt(message: TakenMessage): Landing {
  if (message.reach === "answered") return "landed";
  if (message.hasBegun) return isWork(message.kind) ? "landed" : "repeated";
  return message.inRecord === false ? unsent(message) : undecided(message);
}

/** An acknowledgement counts only if the agent also replied: it may die before it reads the message. */
function ofSteer(message: TakenMessage): Landing {
  if (message.reach === "answered") return message.isAcknowledged ? "landed" : "repeated";
  return message.inRecord === false ? unsent(message) : undecided(message);
}

function unsent({ kind, isStopped }: TakenMessage): Landing {
  return isStopped && isWork(kind) ? "unwanted" : "returned";
}

function undecided({ kind }: TakenMessage): Landing {
  return isWork(kind) ? "unknown" : "repeated";
}
