import { shortId } from "../contract/short-id.ts";
import { replaysOf } from "../history/state/trees.ts";
import type { ImportedEntry } from "../store/port/store.ts";
import type { Context } from "./context.ts";
import { refNumber } from "./identity.ts";
import type { Discovery } from "./add-found.ts";
import { continuesEntry } from "./to-entry.ts";

/** At most this many sessions per scan are looked up in the store; at the first import, none. */
const ASKED_MAX = 32;

/**
 * Finds sessions that begin with the rows of another one, because they were resumed or forked into a new
 * file. The first session keeps the shared rows; the later ones have only their own.
 */
export class SharedPrefixes {
  readonly #byFirstRef = new Map<string, string>();
  readonly #ownerByKey = new Map<string, string>();

  /** Must be called before the sessions are read. */
  async note({ catalog, options, rpc }: Context, discoveries: readonly Discovery[]): Promise<void> {
    const tops = discoveries.filter(
      ({ found, facts, isEmpty }) => !isEmpty && !found.isSubagent && facts.firstRef !== null,
    );
    const sessions = tops.map(({ found, facts }) => ({ found, state: { facts, inline: {} } }));
    for (const [key, owner] of replaysOf(sessions)) this.#ownerByKey.set(key, owner);
    let asked = 0;
    for (const { found, facts } of tops) {
      if (this.#ownerByKey.has(found.key)) continue;
      const name = `${found.format} ${facts.firstRef}`;
      const mayAsk = catalog.hadSome && asked < ASKED_MAX;
      const known = this.#byFirstRef.get(name);
      if (known === undefined && mayAsk) asked += 1;
      const at = { node: options.node, format: found.format, ref: refNumber(facts.firstRef ?? "") };
      const owner = known ?? (mayAsk ? await rpc.ask("ownerOfRef", at) : null);
      if (owner !== null && owner !== found.key) this.#ownerByKey.set(found.key, owner);
      else this.#byFirstRef.set(name, found.key);
    }
  }

  ownerOf(key: string): string | null {
    const owner = this.#ownerByKey.get(key) ?? null;
    return owner === null ? null : (this.#ownerByKey.get(owner) ?? owner);
  }
}

/** For a session that continues another one: drops the entries that the other session already has. */
export class PrefixFilter {
  readonly #refs: ReadonlySet<number>;
  readonly #sessionId: string;
  #hasLeftOut = false;

  constructor(refs: ReadonlySet<number>, sessionId: string) {
    this.#refs = refs;
    this.#sessionId = sessionId;
  }

  /** Returns the session's own entries. A notice before them names the session with the earlier entries. */
  own(entries: readonly ImportedEntry[]): readonly ImportedEntry[] {
    const own = entries.filter(({ ref }) => !this.#refs.has(ref));
    if (own.length < entries.length) this.#hasLeftOut = true;
    const [first] = own;
    if (first === undefined || !this.#hasLeftOut) return own;
    this.#hasLeftOut = false;
    return [continuesEntry(shortId(this.#sessionId), first), ...own];
  }
}
