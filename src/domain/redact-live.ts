import { secretsIn, shownPart } from "./redact.ts";
import { Tail } from "./secret-shape.ts";

/** How much of what was shown is remembered: names stand before their values. */
const CONTEXT_MAX = 512;
/** No more than this is held of what may be a secret: without an end by then it is shown as if it ended there. */
const HOLD_MAX = 320 * 1024;
/** A word that is longer is shown before it ends, except for its last part, in which a secret may begin. */
const WORD_MAX = 64 * 1024;
const KEEP_BACK = 8 * 1024;
/** What is held longer than this is looked at again only when it has grown by a quarter. */
const HELD_MAX = 256;

/**
 * Live text without secrets, however it is cut. The pieces that `push` and at last `flush` return are
 * together what `redact` makes of the whole, and no piece of a secret is among them: the last word, and
 * whatever may still turn out to be part of a secret, is held until more text or the end has decided it.
 */
export class LiveRedactor {
  /** What was shown last, as it came. */
  #context = "";
  #held = "";
  #lookAt = 0;

  push(text: string): string {
    // A word goes on until a space ends it.
    this.#held += text;
    const { length } = this.#held;
    const isFull = length > HOLD_MAX;
    if (length < this.#lookAt && !isFull) return "";
    if (length < WORD_MAX && !/\s/.test(text)) return "";
    const whole = this.#context + this.#held;
    const tail = new Tail();
    const secrets = secretsIn(whole, tail);
    const from = this.#context.length;
    const early = length < WORD_MAX ? 0 : whole.length - KEEP_BACK;
    const until = isFull ? early : Math.min(Math.max(lastWord(whole), early), tail.from);
    const to = Math.max(from, Math.min(until, secrets.covering(until)?.start ?? until));
    const shown = shownPart(whole, secrets.all, { from, to });
    this.#held = whole.slice(to);
    if (to > from) this.#context = lastWords(whole.slice(0, to));
    this.#lookAt = this.#held.length < HELD_MAX ? 0 : this.#held.length * 1.25;
    return shown;
  }

  /**
   * What may be kept beside the pieces while more may come: the last word, where it is an ordinary one that neither
   * is nor begins a secret. The next `push` or `flush` returns it again.
   */
  peek(): string {
    if (!ORDINARY.test(this.#held)) return "";
    const whole = this.#context + this.#held;
    const tail = new Tail();
    const from = this.#context.length;
    const secrets = secretsIn(whole, tail);
    if (tail.from < whole.length) return "";
    return shownPart(whole, secrets.all, { from, to: whole.length }) === this.#held ? this.#held : "";
  }

  /** The rest: nothing more belongs to it. */
  flush(): string {
    const whole = this.#context + this.#held;
    const from = this.#context.length;
    this.#context = "";
    this.#held = "";
    this.#lookAt = 0;
    if (from === whole.length) return "";
    return shownPart(whole, secretsIn(whole, null).all, { from, to: whole.length });
  }
}

/** One word as prose has it, with the signs behind it. Keys and tokens have figures, both cases, or more letters. */
const ORDINARY = /^\s*\p{Lu}?\p{Ll}{0,15}[.,;:!?…)\]}"'»”’*_`]{0,4}\s*$/u;

const MARK_BEGUN = /\[redacted: [a-z0-9 .]{0,32}$/;

/** Where the last word begins, with the blanks behind it: whether a line ends there is not known yet. */
function lastWord(text: string): number {
  const mark = MARK_BEGUN.exec(text.slice(-48));
  let end = text.length - (mark?.[0].length ?? 0);
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === "\t")) end -= 1;
  let start = end;
  while (start > 0 && !/\s/.test(text[start - 1] as string)) start -= 1;
  return start === text.length || (start === end && mark === null) ? text.length : start;
}

function lastWords(text: string): string {
  if (text.length <= CONTEXT_MAX) return text;
  const cut = text.slice(-CONTEXT_MAX);
  const blank = cut.search(/\s/);
  return blank === -1 ? "" : cut.slice(blank + 1);
}
