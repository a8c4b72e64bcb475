import { shortId } from "../contract/short-id.ts";
import type { ReadyEntry } from "../store/port/store.ts";
import type { Context } from "./context.ts";
import { refNumber } from "./identity.ts";
import type { Newcomer } from "./add-found.ts";
import { originalEntry } from "./to-entry.ts";

/** So many are looked up in the store with one look; a whole disk full is compared with itself. */
const ASKED_MAX = 32;

/**
 * Which sessions begin with the rows of another one, because it was resumed or forked into a new file. The
 * one that was there first keeps them; the later ones have only what is their own.
 */
export class Originals {
  readonly #byFirstRef = new Map<string, string>();
  readonly #originals = new Map<string, string>();

  /** What was found for the first time, before it is read. */
  async take(context: Context, newcomers: readonly Newcomer[]): Promise<void> {
    const tops = newcomers.filter(
      ({ found, facts, isEmpty }) => !isEmpty && !found.isSubagent && facts.firstRef !== null,
    );
    const sessions = tops.map(({ found, facts }) => ({ found, state: { facts, inline: {} } }));
    for (const [key, original] of context.replays(sessions)) this.#originals.set(key, original);
    let asked = 0;
    for (const { found, facts } of tops) {
      if (this.#originals.has(found.key)) continue;
      const name = `${found.format} ${facts.firstRef}`;
      const mayAsk = context.catalog.hadSome && asked < ASKED_MAX;
      const known = this.#byFirstRef.get(name);
      if (known === undefined && mayAsk) asked += 1;
      const original = known ?? (mayAsk ? await holderOf(context, found.format, facts.firstRef) : null);
      if (original !== null && original !== found.key) this.#originals.set(found.key, original);
      else this.#byFirstRef.set(name, found.key);
    }
  }

  of(key: string): string | null {
    const original = this.#originals.get(key) ?? null;
    return original === null ? null : (this.#originals.get(original) ?? original);
  }
}

function holderOf(
  { link, options }: Context,
  format: string,
  firstRef: string | null,
): Promise<string | null> {
  return link.ask("holderOf", { node: options.node, format, ref: refNumber(firstRef ?? "") });
}

/** What another session has already, left out of one that goes on from it. */
export class Replay {
  readonly #refs: ReadonlySet<number>;
  readonly #sessionId: string;
  #hasLeftOut = false;

  constructor(refs: ReadonlySet<number>, sessionId: string) {
    this.#refs = refs;
    this.#sessionId = sessionId;
  }

  /** Its own entries, after a word on where those before them stand. */
  own(entries: readonly ReadyEntry[]): readonly ReadyEntry[] {
    const own = entries.filter(({ ref }) => !this.#refs.has(ref));
    if (own.length < entries.length) this.#hasLeftOut = true;
    const [first] = own;
    if (first === undefined || !this.#hasLeftOut) return own;
    this.#hasLeftOut = false;
    return [originalEntry(shortId(this.#sessionId), first), ...own];
  }
}
