import type { EntryBody } from "../../contract/index.ts";
import { LiveRedactor } from "../../secrets/redact-live.ts";
import type { NewEntry, Tx, TurnRecord } from "../../store/port/store.ts";
import type { MessageFile } from "./message-file.ts";
import { firstChars } from "../../text/fence.ts";

/** How often a growing message is written: at most once a second, and a long one less often. */
const DRAFT_MS = 1_000;
const DRAFT_CHARS_PER_MS = 256;

/**
 * The message that the agent is writing, as it may be kept and shown: without secrets, and no longer than an entry may be.
 * The rest of a longer one goes to a file. It is never handled as a whole: each piece costs what it is long.
 */
export class OpenMessage {
  readonly kind: "text" | "thought";
  readonly at: number;
  /** Without secrets. */
  text = "";
  /** How much of it has come. */
  chars = 0;
  /** Where its rest is. */
  file: MessageFile | null = null;
  /** The entry that it became. */
  entry: NewEntry | null = null;
  /** How much of `text` the store has. */
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

  /** The part of it that may be shown now. */
  push(text: string): string {
    this.chars += text.length;
    // What nobody will ever read need not lose its secrets either.
    if (this.file?.isFull === true) {
      this.file.add(text);
      return "";
    }
    return this.#add(this.#live.push(text));
  }

  /** Nothing more belongs to it: the part that was held back. */
  end(): string {
    return this.#add(this.#live.flush());
  }

  /** What the draft ends with while more may come. */
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
  tx.append({ sessionId, type: "entry.opened", text: null, data, at: now });
}
