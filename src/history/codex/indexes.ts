import { join } from "node:path";
import { readSmall } from "../small-file.ts";
import { oneLine } from "../text.ts";
import { asObject, asText } from "../value.ts";

/** What Codex keeps beside its sessions' files about one of them. */
export interface IndexedSession {
  /** The name a person gave it. */
  readonly title: string | null;
  readonly isSubagent: boolean;
  readonly parentId: string | null;
  readonly rootId: string | null;
  readonly closed: boolean;
}

export interface Indexed {
  of(id: string): IndexedSession;
}

const INDEX_BYTES_MAX = 64 * 1024 * 1024;
const UNKNOWN: IndexedSession = {
  title: null,
  isSubagent: false,
  parentId: null,
  rootId: null,
  closed: false,
};

/** Names that were given to sessions; the newest line about one counts. */
export async function readIndexes(root: string): Promise<Indexed> {
  const titles = await readTitles(root);
  return { of: (id) => ({ ...UNKNOWN, title: titles.get(id) ?? null }) };
}

async function readTitles(root: string): Promise<ReadonlyMap<string, string>> {
  const titles = new Map<string, string>();
  const text = await readSmall(join(root, "session_index.jsonl"), INDEX_BYTES_MAX);
  for (const line of (text ?? "").split("\n")) {
    const record = line.trim() === "" ? null : parsed(line);
    const id = asText(record?.["id"]);
    const title = asText(record?.["thread_name"]);
    if (id !== null && title !== null) titles.set(id.toLowerCase(), oneLine(title, 200));
  }
  return titles;
}

function parsed(line: string): Readonly<Record<string, unknown>> | null {
  try {
    return asObject(JSON.parse(line));
  } catch {
    return null;
  }
}
