import type { ImportedEntry } from "../store/port/store.ts";
import type { Member } from "./catalog.ts";
import type { ThreadRpc } from "../system/thread-rpc.ts";
import type { StoreSide } from "./thread/protocol.ts";
import { rewrittenEntry } from "./to-entry.ts";

const PAGE = 5_000;

/**
 * Handles files that are read again from the beginning because they were replaced. Entries that both versions
 * have are not added a second time. Before the first new entry, a notice says how many earlier entries are
 * gone. A file may be empty while it is being written, so there is no notice until a new entry appears.
 */
export class RewrittenFiles {
  readonly #rpc: ThreadRpc<StoreSide>;
  /** The earlier entries of each file that is read again, by file and then by session. */
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
  /** Maps the ref of each earlier entry to whether the new version of the file has that entry too. */
  readonly hasCome: Map<number, boolean>;
  /** Number of earlier entries that the new version lacks so far; set to 0 when the notice is added. */
  leftCount: number;
}

/** Returns whether an earlier version had the entry. If so, counts it as found in the new version. */
function hasCome(before: Before, ref: number): boolean {
  const known = before.hasCome.get(ref);
  if (known === false && before.leftCount > 0) {
    before.hasCome.set(ref, true);
    before.leftCount -= 1;
  }
  return known !== undefined;
}
