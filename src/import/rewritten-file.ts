import type { ImportedEntry } from "../store/port/store.ts";
import type { Member } from "./catalog.ts";
import type { ThreadRpc } from "../system/thread-rpc.ts";
import type { StoreSide } from "./thread/protocol.ts";
import { rewrittenEntry } from "./to-entry.ts";

const PAGE = 5_000;

/**
 * Files that are read anew because they are no longer what was read before. What both have is not taken a
 * second time; before the first entry that is new it is said how many of those before it are gone. A file
 * may be found empty while it is being written: nothing is said before something new stands in it.
 */
export class RewrittenFiles {
  readonly #rpc: ThreadRpc<StoreSide>;
  /** By file, then by session: what was there. */
  readonly #open = new Map<string, Map<number, Promise<Before>>>();

  constructor(rpc: ThreadRpc<StoreSide>) {
    this.#rpc = rpc;
  }

  begin(fileKey: string): void {
    this.#open.set(fileKey, new Map());
  }

  forget(fileKey: string): void {
    this.#open.delete(fileKey);
  }

  /** These entries of a session of the file, with what is to be said before them. */
  async withNotice(
    fileKey: string,
    { no }: Member,
    entries: readonly ImportedEntry[],
  ): Promise<readonly ImportedEntry[]> {
    const sessions = this.#open.get(fileKey);
    if (sessions === undefined) return entries;
    const asking = sessions.get(no) ?? this.#refs(no);
    sessions.set(no, asking);
    const before = await asking;
    const first = entries.findIndex(({ ref }) => ref >= 0 && !hasCome(before, ref));
    const next = entries[first];
    if (next === undefined || before.leftCount === 0) return entries;
    const notice = rewrittenEntry(before.leftCount, next);
    before.leftCount = 0;
    return [...entries.slice(0, first), notice, ...entries.slice(first)];
  }

  async #refs(no: number): Promise<Before> {
    const refs = await refsOf(this.#rpc, no);
    return { hasCome: new Map([...refs].map((ref) => [ref, false])), leftCount: refs.size };
  }
}

/** The refs of all entries that a session has from its file. */
export async function refsOf(rpc: ThreadRpc<StoreSide>, no: number): Promise<Set<number>> {
  const refs = new Set<number>();
  for (let after = -1; ;) {
    const page = await rpc.ask("refs", { no, after, limit: PAGE });
    for (const ref of page) refs.add(ref);
    after = page.at(-1) ?? after;
    if (page.length < PAGE) return refs;
  }
}

interface Before {
  /** By ref, whether it has come again. */
  readonly hasCome: Map<number, boolean>;
  /** Of those that have not. None when nothing more is to be said of them. */
  leftCount: number;
}

/** Whether an entry was there before, which counts once. */
function hasCome(before: Before, ref: number): boolean {
  const known = before.hasCome.get(ref);
  if (known === false && before.leftCount > 0) {
    before.hasCome.set(ref, true);
    before.leftCount -= 1;
  }
  return known !== undefined;
}
