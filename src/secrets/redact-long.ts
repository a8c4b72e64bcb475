import { redact } from "./redact.ts";
import { redactDeep } from "./redact-deep.ts";
import { LiveRedactor } from "./redact-live.ts";

/** So much text is searched for secrets in one go. More of it would keep everyone else waiting. */
const AT_ONCE_CHARS = 16 * 1024;

/** `redactDeep` in steps, each of which takes little time. */
export function* redactSlowly<T>(value: T): Generator<void, T> {
  const known = new Map<string, string>();
  const { shown, long } = redactUpTo(value, { chars: AT_ONCE_CHARS, known });
  if (long.length === 0) return shown;
  for (const [text, after] of yield* searched(long)) known.set(text, after);
  return redactDeep(value, (text) => known.get(text) ?? redact(text));
}

/** Texts without their secrets, by what they were. A step searches no more than can be searched in one go. */
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

/** Redacts as much as there is room for; `long` has the texts that were left as they are. */
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

/** Within a write these texts are too long to be searched for secrets. Whoever began the write searches them and begins again. */
export class LongTexts extends Error {
  readonly texts: readonly string[];

  constructor(texts: readonly string[]) {
    super("There is too much text to search it for secrets within a write.");
    this.texts = texts;
  }
}

/**
 * What writes may still search, and the long texts that were searched for them before they began. Writes cannot pause,
 * and what they redact is known only within them.
 */
class WriteRedactions {
  readonly #known = new Map<string, { shown: string; users: number }>();
  #chars = AT_ONCE_CHARS;
  #open = 0;
  #unlimited = 0;

  /** `isLimited`: its texts may be left for `LongTexts`. */
  open(isLimited: boolean): void {
    this.#open += 1;
    if (!isLimited) this.#unlimited += 1;
  }

  close(isLimited: boolean): void {
    this.#open -= 1;
    if (!isLimited) this.#unlimited -= 1;
  }

  /** Another write has its turn. */
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

/** `redactDeep` for use within a write: throws `LongTexts` once the write has more text than can be searched in one go. */
export function redactBriefly<T>(value: T): T {
  return writeRedactions.redact(value);
}
