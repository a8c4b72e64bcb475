import { secretsIn, shownPart } from "./redact.ts";
import { type Secret, Tail } from "./detect/shape.ts";

/** How many shown characters are searched again: `password=` may be shown before its value arrives. */
const CONTEXT_MAX = 512;
/**
 * The most characters that are held back. Beyond this, a secret is shown as `[redacted: …]` even if it has
 * not ended, and other text as it is. The limit also bounds the time per piece, because all held text is
 * searched at once.
 */
const HOLD_MAX = 96 * 1024;
/** The limit for a private key, which is cheap to search and may be much longer than other secrets. */
const KEY_MAX = 320 * 1024;
/** A longer word is shown before it ends, except its last part (`KEEP_BACK`): a secret may begin there. */
const WORD_MAX = 32 * 1024;
const KEEP_BACK = 8 * 1024;
/** Held text longer than this is searched again only after it has grown by a quarter. */
const HELD_MAX = 256;

/**
 * Removes secrets from text that arrives in pieces. All results together equal `redact` of the whole text.
 * Text that may still become part of a secret is held back until more text or the end decides it.
 */
export class LiveRedactor {
  /** The text shown last, before redaction. */
  #context = "";
  #held = "";
  #lookAt = 0;
  /** The held text is an unfinished private key. */
  #isKey = false;
  /** A secret over the limit was shown as `[redacted: …]`. The rest of its word is dropped too. */
  #isInSecret = false;

  push(piece: string): string {
    const text = this.#isInSecret ? this.#behindSecret(piece) : piece;
    if (text === "") return "";
    this.#held += text;
    const { length } = this.#held;
    const isFull = length > (this.#isKey ? KEY_MAX : HOLD_MAX);
    if (length < this.#lookAt && !isFull) return "";
    // A word is complete only when a space ends it.
    if (length < WORD_MAX && !/\s/.test(text)) return "";
    const whole = this.#context + this.#held;
    const tail = new Tail();
    const secrets = secretsIn(whole, tail);
    const from = this.#context.length;
    const early = length < WORD_MAX ? 0 : whole.length - KEEP_BACK;
    const until = isFull ? early : Math.min(lastWord(whole, early), tail.from);
    const covering = secrets.covering(until);
    this.#isKey = covering?.kind === "private key";
    const to = Math.max(from, Math.min(until, covering?.start ?? until));
    if (isFull && to === from) return this.#showAll(whole, secrets.all);
    const shown = shownPart(whole, secrets.all, { from, to });
    this.#held = whole.slice(to);
    if (to > from) this.#context = lastWords(whole.slice(0, to));
    this.#lookAt = this.#held.length < HELD_MAX ? 0 : this.#held.length * 1.25;
    return shown;
  }

  /** Called when one secret fills the held text. Returns it as `[redacted: …]` and then holds nothing. */
  #showAll(whole: string, secrets: readonly Secret[]): string {
    const from = this.#context.length;
    this.#isInSecret = /\S$/.test(whole);
    this.#context = "";
    this.#held = "";
    this.#lookAt = 0;
    this.#isKey = false;
    return shownPart(whole, secrets, { from, to: whole.length });
  }

  #behindSecret(piece: string): string {
    const end = piece.search(/\s/);
    if (end === -1) return "";
    this.#isInSecret = false;
    return piece.slice(end);
  }

  /** Returns the held word if it cannot be part of a secret; `push` or `flush` returns it again. */
  peek(): string {
    if (!ORDINARY.test(this.#held)) return "";
    const whole = this.#context + this.#held;
    const tail = new Tail();
    const from = this.#context.length;
    const secrets = secretsIn(whole, tail);
    if (tail.from < whole.length) return "";
    return shownPart(whole, secrets.all, { from, to: whole.length }) === this.#held ? this.#held : "";
  }

  flush(): string {
    const whole = this.#context + this.#held;
    const from = this.#context.length;
    this.#context = "";
    this.#held = "";
    this.#lookAt = 0;
    this.#isInSecret = false;
    if (from === whole.length) return "";
    return shownPart(whole, secretsIn(whole, null).all, { from, to: whole.length });
  }
}

/** One word of prose with its punctuation. Keys and tokens have digits, mixed case, or more letters. */
const ORDINARY = /^\s*\p{Lu}?\p{Ll}{0,15}[.,;:!?…)\]}"'»”’*_`]{0,4}\s*$/u;

const MARK_BEGUN = /\[redacted: [a-z0-9 .]{0,32}$/;

/**
 * Returns where the last word begins, but never an index before `from`. Blanks after the word are held with
 * it, because what follows them may decide whether the word is a secret.
 */
function lastWord(text: string, from: number): number {
  const mark = MARK_BEGUN.exec(text.slice(-48));
  let end = text.length - (mark?.[0].length ?? 0);
  while (end > from && (text[end - 1] === " " || text[end - 1] === "\t")) end -= 1;
  if (from > 0 && end === from) return from;
  let start = end;
  while (start > from && !/\s/.test(text[start - 1] as string)) start -= 1;
  if (start === text.length || (start === end && mark === null)) return Math.max(from, text.length);
  return Math.max(from, start);
}

function lastWords(text: string): string {
  if (text.length <= CONTEXT_MAX) return text;
  const cut = text.slice(-CONTEXT_MAX);
  const blank = cut.search(/\s/);
  return blank === -1 ? "" : cut.slice(blank + 1);
}
