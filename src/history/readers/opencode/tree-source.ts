import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { BadLine } from "../../port.ts";
import { readSmall } from "../../lines/byte-file.ts";
import { timeOf } from "../../lines/text.ts";
import { asObject, asText, type JsonObject } from "../../lines/value.ts";
import {
  badRecord,
  byId,
  PartBudget,
  type Message,
  parsedRecord,
  type Part,
  type SessionRecord,
  type Source,
  timesOf,
} from "./source.ts";

/** Reads the files that OpenCode wrote before it had a database. They no longer change. */
export function treeSource({ path, id }: { path: string; id: string }, recordBytesMax: number): Source {
  const storage = join(path, "../../..");
  const messages = join(storage, "message", id);
  const read = async (file: string): Promise<JsonObject | string> => {
    const text = await readSmall(file, recordBytesMax);
    return text === null ? "cannot be read" : parsedRecord(text, text.length, recordBytesMax);
  };
  let ids: Promise<readonly string[]> | null = null;
  return {
    isFrozen: true,
    async session() {
      const record = await read(path);
      if (typeof record === "string") throw new Error(`it ${record}`);
      return treeSession(record, id);
    },
    messageIds: () => (ids ??= namesIn(messages)),
    async message(messageId): Promise<Message | null> {
      const data = await read(join(messages, `${messageId}.json`));
      const bad: BadLine[] = [];
      if (typeof data === "string") bad.push(badRecord(messageId, data));
      const parts = await partsOf(join(storage, "part", messageId), {
        read,
        bad,
        held: new PartBudget(recordBytesMax),
      });
      return { id: messageId, data: asObject(data) ?? {}, parts, bad, bytes: 4096 * (parts.length + 1) };
    },
    async roleOf(messageId) {
      const data = await read(join(messages, `${messageId}.json`));
      return typeof data === "string" ? null : asText(data["role"]);
    },
    settled: async () => true,
    close: () => undefined,
  };
}

export function treeSession(record: JsonObject, id: string): SessionRecord {
  return {
    id,
    parentId: asText(record["parentID"]),
    title: asText(record["title"]),
    directory: asText(record["directory"]),
    version: asText(record["version"]),
    agent: asText(record["agent"]),
    createdAt: timeOf(asObject(record["time"])?.["created"]),
    revertId: asText(asObject(record["revert"])?.["messageID"]),
  };
}

interface Reading {
  readonly read: (file: string) => Promise<JsonObject | string>;
  readonly bad: BadLine[];
  readonly held: PartBudget;
}

async function partsOf(folder: string, { read, bad, held }: Reading): Promise<Part[]> {
  const parts: Part[] = [];
  for (const id of await namesIn(folder)) {
    // A missing file counts as 0 bytes here; `read` then reports that it is missing.
    const file = await stat(join(folder, `${id}.json`)).catch(() => null);
    if (!held.hasRoom(file?.size ?? 0)) {
      bad.push(badRecord(basename(folder), held.why(id)));
      break;
    }
    const data = await read(join(folder, `${id}.json`));
    if (typeof data === "string") bad.push(badRecord(id, data));
    else parts.push({ id, data, createdAt: timeOf(timesOf(data)?.["start"]) });
  }
  return parts.toSorted(byId);
}

/** Returns the names of the records in a folder, in order. */
async function namesIn(folder: string): Promise<string[]> {
  // A message without parts has no folder.
  const names = await readdir(folder).catch((): string[] => []);
  return names
    .filter((name) => name.endsWith(".json"))
    .map((name) => basename(name, ".json"))
    .toSorted();
}
