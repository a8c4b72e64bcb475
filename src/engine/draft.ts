import type { NewEntry, Tx, TurnRecord } from "../store/port.ts";

/** How often a growing message is written: at most once a second, and a long one less often. */
const DRAFT_MS = 1_000;
const DRAFT_CHARS_PER_MS = 256;

/** The message that the agent is writing: what may be shown of it, and what the store has of that. */
export class OpenMessage {
  readonly kind: "text" | "thought";
  readonly at: number;
  /** Without secrets. */
  text = "";
  /** The entry that it became. */
  entry: NewEntry | null = null;
  /** How much of `text` the store has. */
  stored = 0;
  storedEnd = "";

  constructor(kind: "text" | "thought", at: number) {
    this.kind = kind;
    this.at = at;
  }

  isNew(upTo: number, end: string): boolean {
    return upTo !== this.stored || end !== this.storedEnd;
  }

  get writeEveryMs(): number {
    return Math.max(DRAFT_MS, this.text.length / DRAFT_CHARS_PER_MS);
  }
}

/** What a write does to the session's draft; `message` is what the row holds afterwards. */
export type DraftStep =
  | { readonly what: "remove"; readonly message: null }
  | {
      readonly what: "put" | "grow";
      readonly message: OpenMessage;
      readonly upTo: number;
      readonly end: string;
    };

/** In the transaction that writes the entries before it, and the entry that it has become. */
export async function writeDraft(tx: Tx, turn: TurnRecord, step: DraftStep, now: number): Promise<void> {
  const { sessionId, id: turnId } = turn;
  if (step.what === "remove") {
    await tx.drafts.remove(sessionId);
    return;
  }
  const { message, upTo, end } = step;
  if (step.what === "grow") {
    const text = message.text.slice(message.stored, upTo);
    if (await tx.drafts.grow(turn, { text, end, at: now })) return;
  }
  const { kind, at } = message;
  const text = message.text.slice(0, upTo);
  const index = await tx.drafts.put({ sessionId, turnId, kind, text, end, at, updatedAt: now });
  const data = { index, kind, author: "agent", turnId };
  tx.append({ sessionId, type: "entry.opened", text: null, data, at: now });
}
