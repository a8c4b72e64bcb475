import { redact } from "./redact.ts";
import { redactDeep } from "./redact-deep.ts";
import { LiveRedactor } from "./redact-live.ts";

/** Characters searched for secrets in one step. A longer step would block the event loop. */
const AT_ONCE_CHARS = 16 * 1024;

export function* redactSlowly<T>(value: T): Generator<void, T> {
  const known = new Map<string, string>();
  const { shown, long } = redactUpTo(value, { chars: AT_ONCE_CHARS, known });
  if (long.length === 0) return shown;
  for (const [text, after] of yield* searched(long)) known.set(text, after);
  return redactDeep(value, (text) => known.get(text) ?? redact(text));
}

/** Maps each text to its redacted form, in steps of at most `AT_ONCE_CHARS`. */
export function* searched(texts: Iterable<string>): Generator<void, Map<string, string>> {
  const shown = new Map<string, string>();
  let chars = 0;
  for (const text of new Set(texts)) {
    if (chars > 0 && chars + text.length > AT_ONCE_CHARS) {
      yield;
      chars = 0;
    }
    chars += text.length;
    shown.set(text, yield* redactInPieces(text));
  }
  return shown;
}

function* redactInPieces(text: string): Generator<void, string> {
  if (text.length <= AT_ONCE_CHARS) return redact(text);
  const live = new LiveRedactor();
  let shown = "";
  for (let from = 0; from < text.length; from += AT_ONCE_CHARS) {
    shown += live.push(text.slice(from, from + AT_ONCE_CHARS));
    yield;
  }
  return shown + live.flush();
}

/** Redacts strings up to a total of `chars`; `long` lists the texts left unredacted. */
function redactUpTo<T>(
  value: T,
  of: { chars: number; known: { get(text: string): string | undefined } },
): { shown: T; long: readonly string[]; chars: number } {
  const long: string[] = [];
  let { chars } = of;
  const shown = redactDeep(value, (text) => {
    const known = of.known.get(text);
    if (known !== undefined) return known;
    chars -= text.length;
    if (chars >= 0) return redact(text);
    long.push(text);
    return text;
  });
  return { shown, long, chars };
}

/** Thrown by a write that has too much text to search. The caller redacts the text first, then retries. */
export class LongTexts extends Error {
  readonly texts: readonly string[];

  constructor(texts: readonly string[]) {
    super("There is too much text to search it for secrets within a write.");
    this.texts = texts;
  }
}

/**
 * How much text the current write may still search for secrets, and the long texts that were redacted before
 * it began. A write cannot pause to redact long texts, but learns its texts only while it runs. So it throws
 * `LongTexts`; the texts are redacted outside, and the write is retried.
 */
class WriteRedactions {
  readonly #known = new Map<string, { shown: string; users: number }>();
  #chars = AT_ONCE_CHARS;
  #open = 0;
  #unlimited = 0;

  /** `isLimited`: the write throws `LongTexts` if it has too much text. */
  open(isLimited: boolean): void {
    this.#open += 1;
    if (!isLimited) this.#unlimited += 1;
  }

  close(isLimited: boolean): void {
    this.#open -= 1;
    if (!isLimited) this.#unlimited -= 1;
  }

  begin(): void {
    this.#chars = AT_ONCE_CHARS;
  }

  get(text: string): string | undefined {
    return this.#known.get(text)?.shown;
  }

  keep(text: string, shown: string): void {
    const known = this.#known.get(text) ?? { shown, users: 0 };
    known.users += 1;
    this.#known.set(text, known);
  }

  release(text: string): void {
    const known = this.#known.get(text);
    if (known === undefined) return;
    known.users -= 1;
    if (known.users === 0) this.#known.delete(text);
  }

  redact<T>(value: T): T {
    const isLimited = this.#open > 0 && this.#unlimited === 0;
    const room = isLimited ? this.#chars : Number.POSITIVE_INFINITY;
    const { shown, long, chars } = redactUpTo(value, { chars: room, known: this });
    if (long.length > 0) throw new LongTexts(long);
    if (isLimited) this.#chars = chars;
    return shown;
  }
}

export const writeRedactions = new WriteRedactions();

/** Works like `redactDeep`, but within a write throws `LongTexts` if the text is too long for one step. */
export function redactBriefly<T>(value: T): T {
  return writeRedactions.redact(value);
}
