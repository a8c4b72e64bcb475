import type { EntryBody } from "../../contract/index.ts";
import { LiveRedactor } from "../../secrets/redact-live.ts";
import type { NewEntry, Tx, TurnRecord } from "../../store/port/store.ts";
import type { MessageFile } from "./message-file.ts";
import { firstChars } from "../../text/fence.ts";

/** Minimum time between two writes of a growing message; long messages are written less often. */
const DRAFT_MS = 1_000;
const DRAFT_CHARS_PER_MS = 256;

/**
 * The message that the agent is writing, as it may be stored and shown: redacted, and cut at an entry's
 * maximum length. The remainder goes to a file. A fragment costs time proportional to its own length, not to
 * the message's.
 */
export class OpenMessage {
  readonly kind: "text" | "thought";
  readonly at: number;
  /** The redacted text so far, at most as long as an entry may be. */
  text = "";
  /** Number of characters received so far. */
  chars = 0;
  /** The file with the remainder of the message. */
  file: MessageFile | null = null;
  /** The entry that the message has become. */
  entry: NewEntry | null = null;
  /** Number of characters of `text` that are in the store. */
  stored = 0;
  storedEnd = "";
  readonly #live = new LiveRedactor();
  readonly #charsMax: number;
  readonly #newFile: () => MessageFile;

  constructor(kind: "text" | "thought", of: { at: number; charsMax: number; newFile: () => MessageFile }) {
    this.kind = kind;
    this.at = of.at;
    this.#charsMax = of.charsMax;
    this.#newFile = of.newFile;
  }

  /** Adds a fragment. Returns the text that may be shown now. */
  push(text: string): string {
    this.chars += text.length;
    // Text that arrives when the file is full is dropped, so it needs no redaction.
    if (this.file?.isFull === true) {
      this.file.add(text);
      return "";
    }
    return this.#add(this.#live.push(text));
  }

  /** Ends the message. Returns the text that was withheld because it could have been part of a secret. */
  end(): string {
    return this.#add(this.#live.flush());
  }

  /** The last word received, perhaps incomplete. The draft shows it unless it may be part of a secret. */
  get ending(): string {
    return this.file === null ? this.#live.peek() : "";
  }

  get body(): EntryBody {
    const { text, file } = this;
    if (file === null) return { text };
    return { text, more: { path: file.path, chars: file.chars, leftOutChars: file.leftOutChars } };
  }

  isNew(upTo: number, end: string): boolean {
    return upTo !== this.stored || end !== this.storedEnd;
  }

  get writeEveryMs(): number {
    return Math.max(DRAFT_MS, this.text.length / DRAFT_CHARS_PER_MS);
  }

  #add(shown: string): string {
    const head = firstChars(shown, this.#charsMax - this.text.length);
    this.text += head;
    if (head.length === shown.length) return head;
    this.file ??= this.#newFile();
    this.file.add(shown.slice(head.length));
    return head;
  }
}

/** The change that a write makes to the draft. `message` is the message in the draft's row afterwards. */
export type DraftStep =
  | { readonly what: "remove"; readonly message: null }
  | {
      readonly what: "put" | "grow";
      readonly message: OpenMessage;
      readonly upTo: number;
      readonly end: string;
    };

/** Writes or removes the draft, in the same transaction as the entries that precede or replace it. */
export async function writeDraft(
  tx: Tx,
  turn: TurnRecord,
  { step, now }: { step: DraftStep; now: number },
): Promise<void> {
  const { sessionId, id: turnId } = turn;
  if (step.what === "remove") {
    await tx.drafts.remove(sessionId);
    return;
  }
  const { message, upTo, end } = step;
  if (step.what === "grow") {
    const text = message.text.slice(message.stored, upTo);
    if (await tx.drafts.grow(turn, { text, end, at: now, isClean: true })) return;
  }
  const { kind, at } = message;
  const text = message.text.slice(0, upTo);
  const index = await tx.drafts.put({
    sessionId,
    turnId,
    kind,
    text,
    end,
    at,
    updatedAt: now,
    isClean: true,
  });
  const data = { index, kind, author: "agent", turnId };
  tx.append({ sessionId, type: "entry.opened", data, at: now });
}
