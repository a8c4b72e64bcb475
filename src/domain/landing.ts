import type { Carrier, MessageKind } from "../contract/index.ts";

/** What is known, when a turn settles, about a message that was taken into it and has not landed yet. */
export interface TakenMessage {
  readonly kind: MessageKind;
  readonly carrier: Carrier | null;
  /** Of a steer: the agent said that it took the message. */
  readonly isAcknowledged: boolean;
  readonly reach: Reach;
  /** The agent worked after the prompt was sent: it wrote, thought, planned or called a tool. */
  readonly hasBegun: boolean;
  /** Whether the agent's own record, read back, has the message; null where no record could be read. */
  readonly inRecord: boolean | null;
  /** Somebody stopped the turn. */
  readonly isStopped: boolean;
}

/**
 * How far the prompt of a turn is known to have come. `unsent`: not a byte left the daemon.
 * `unanswered`: it may have been sent. `answered`: the agent replied to it, with a stop reason or an error.
 */
export type Reach = "unsent" | "unanswered" | "answered";

export type Landing =
  | "landed"
  /** Back into the inbox: the agent certainly does not have it. */
  | "returned"
  /** Back into the inbox, marked: the agent may have it. */
  | "repeated"
  /** Void: it is work of a turn that somebody stopped before it began. */
  | "unwanted"
  /** Void: it is work, and whether the agent has it is not known. */
  | "unknown";

/** A message has landed only where there is evidence, never because of how its turn ended. */
export function landingOf(message: TakenMessage): Landing {
  if (message.reach === "unsent") return unsent(message);
  if (message.inRecord === true) return "landed";
  switch (message.carrier) {
    case "prompt":
      return ofPrompt(message);
    case "steer":
      return ofSteer(message);
    default:
      // The id of a tool's reply is seen in the result of that call, or not at all.
      return "repeated";
  }
}

/** Work is a thing to do once; information may be sent again, marked. */
export function isWork(kind: string): boolean {
  return kind === "prompt" || kind === "tell";
}

function ofPrompt(message: TakenMessage): Landing {
  if (message.reach === "answered") return "landed";
  if (message.hasBegun) return isWork(message.kind) ? "landed" : "repeated";
  return message.inRecord === false ? unsent(message) : undecided(message);
}

/** An acknowledgement alone proves nothing: an agent that dies after it may have lost the message. */
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
