import type { Caller, InputOf, SearchOutput } from "../contract/index.ts";
import { Refusal } from "../contract/refusal.ts";
import type { OperationDeps } from "./deps.ts";
import { callerSession, resolve, visibleTo } from "./resolve.ts";

const SNIPPET = 160;

/** Words in the entries of one session, or of the caller's whole scope; all of them must be there. */
export async function search(
  deps: OperationDeps,
  caller: Caller,
  input: InputOf<"search">,
): Promise<SearchOutput> {
  const words = input.query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const self = await callerSession(deps.store.read, caller);
  const session = await sessionOf(deps, caller, input.id, self?.parentId ?? self?.id ?? null);
  const offset = input.cursor === undefined ? 0 : offsetOf(input.cursor);
  const found = await deps.store.read.entries.find({
    words,
    ...(session === null ? {} : { sessionId: session }),
    visible: visibleTo(deps, caller, self),
    offset,
    limit: input.limit + 1,
  });
  const hits = await Promise.all(
    found.slice(0, input.limit).map(async (entry) => {
      const of = await deps.store.read.sessions.byId(entry.sessionId);
      const { sessionId, index, turnId, author, kind, at } = entry;
      const snippet = snippetOf(entry.body.text, words);
      return {
        sessionId,
        shortId: of?.shortId ?? "",
        name: of?.name ?? null,
        index,
        turnId,
        author,
        kind,
        at,
        snippet,
      };
    }),
  );
  return { hits, cursor: found.length > input.limit ? `c${offset + input.limit}` : null };
}

async function sessionOf(
  deps: OperationDeps,
  caller: Caller,
  ref: string | undefined,
  own: string | null,
): Promise<string | null> {
  if (ref === "all") return null;
  return ref === undefined ? own : (await resolve(deps, caller, ref)).id;
}

function snippetOf(text: string, words: readonly string[]): string {
  const at = Math.max(0, text.toLowerCase().indexOf(words[0] ?? ""));
  const from = Math.max(0, at - SNIPPET / 2);
  const cut = text
    .slice(from, from + SNIPPET)
    .replaceAll(/\s+/g, " ")
    .trim();
  return `${from > 0 ? "…" : ""}${cut}${from + SNIPPET < text.length ? "…" : ""}`;
}

function offsetOf(cursor: string): number {
  const value = Number(/^c(\d{1,6})$/.exec(cursor)?.[1] ?? NaN);
  if (Number.isSafeInteger(value)) return value;
  throw new Refusal(
    "invalid_input",
    `"${cursor}" is not a cursor that a search gave. Leave it out to begin.`,
  );
}
