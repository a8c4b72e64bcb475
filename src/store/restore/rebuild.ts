import { NEW_SESSION, unmanagedEffective } from "../port/new-session.ts";
import { LineReader } from "../../text/line-reader.ts";
import { createReadStream } from "node:fs";
import {
  CallbackConfig,
  EntryAuthor,
  EntryBody,
  EntryKind,
  Effective,
  shortId,
  Source,
} from "../../contract/index.ts";
import type { NewEntry, SessionRecord, Store } from "../port/store.ts";
import { type RolloutFile, rolloutsIn } from "./rollout-file.ts";

export interface Rebuilt {
  readonly sessions: number;
  readonly entries: number;
  /** Rollouts that could not be read completely. */
  readonly unreadable: readonly string[];
}

/** Entries per write: few enough to keep each write short. */
const SLICE = 200;
const NOTE = "made again from its rollout after the store was lost";

/**
 * Restores trees and transcripts from rollouts; all restored sessions have ended. Rollouts do not contain
 * inboxes, turns, budgets and keys, so those are lost. Older sessions come first, so that a parent exists
 * before its children.
 */
export async function rebuildFrom(store: Store, folder: string): Promise<Rebuilt> {
  const files = [...rolloutsIn(folder)].toReversed();
  const known = new Map<string, SessionRecord>();
  const unreadable: string[] = [];
  let entries = 0;
  for (const file of files) {
    const meta = await metaOf(file).catch(skipUnreadable);
    if (meta === null) {
      unreadable.push(file.path);
      continue;
    }
    const session = sessionOf(meta, known.get(meta.parentId ?? ""), store.node);
    known.set(session.id, session);
    await store.write(session.rootId, async (tx) => {
      await tx.sessions.add(session);
      const data = { rebuilt: true };
      tx.append({ sessionId: session.id, type: "notice", text: NOTE, data, at: session.createdAt });
    });
    const added = await addEntries(store, session, file);
    entries += added.count;
    if (!added.isWhole) unreadable.push(file.path);
  }
  return { sessions: known.size, entries, unreadable };
}

/** Skips a file that the disk fails to read, so that the others are still restored. */
function skipUnreadable(error: unknown): null {
  if (!(error instanceof Error) || !("syscall" in error)) throw error;
  return null;
}

async function addEntries(
  store: Store,
  session: SessionRecord,
  file: RolloutFile,
): Promise<{ count: number; isWhole: boolean }> {
  let slice: NewEntry[] = [];
  let count = 0;
  let lastAt = session.createdAt;
  const add = async (): Promise<void> => {
    const part = slice;
    slice = [];
    if (part.length === 0) return;
    await store.write(session.rootId, async (tx) => void (await tx.entries.append(session.id, part)));
    count += part.length;
  };
  const read = async (): Promise<true> => {
    for await (const line of linesOf(file)) {
      const entry = entryOf(line);
      if (entry === null) continue;
      lastAt = Math.max(lastAt, entry.at);
      slice.push(entry);
      if (slice.length >= SLICE) await add();
    }
    return true;
  };
  const isWhole = (await read().catch(skipUnreadable)) !== null;
  await add();
  await store.write(session.rootId, (tx) =>
    tx.sessions.patch(session.id, { lastActivityAt: lastAt, endedAt: lastAt, updatedAt: lastAt }),
  );
  return { count, isWhole };
}

interface Line {
  readonly at: number;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/**
 * Yields a rollout's lines, except those that cannot be parsed, such as one that a crash cut off. Does not
 * use `readline`, which hides errors of the stream and leaves the file open if the caller stops early.
 */
async function* linesOf({ path }: RolloutFile): AsyncGenerator<Line> {
  const lines = new LineReader();
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    for (const text of lines.push(chunk)) {
      const line = parsed(text);
      if (line !== null) yield line;
    }
  }
  const last = parsed(lines.rest());
  if (last !== null) yield last;
}

function parsed(text: string): Line | null {
  let value: { timestamp?: unknown; type?: unknown; payload?: Record<string, unknown> | null } | null;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  const at = Date.parse(String(value?.timestamp));
  if (typeof value?.type !== "string" || typeof value.payload !== "object" || Number.isNaN(at)) return null;
  return { at, type: value.type, payload: value.payload ?? {} };
}

function entryOf({ at, type, payload }: Line): NewEntry | null {
  if (type !== "entry") return null;
  const { index: _index, turn_id: _turn, author, kind, ...body } = payload;
  const [who, what, text] = [
    EntryAuthor.safeParse(author),
    EntryKind.safeParse(kind),
    EntryBody.safeParse(body),
  ];
  if (!who.success || !what.success || !text.success) return null;
  return { turnId: null, author: who.data, kind: what.data, body: text.data, isSubagent: false, at };
}

interface Meta {
  readonly id: string;
  readonly parentId: string | null;
  readonly rootId: string;
  readonly at: number;
  readonly payload: Line["payload"];
}

/** Returns the line that records the session's creation. It is among the first lines. */
async function metaOf(file: RolloutFile): Promise<Meta | null> {
  for await (const { at, type, payload } of linesOf(file)) {
    if (type !== "session_meta" || payload["id"] !== file.sessionId) continue;
    const { parent_id: parent, root_id: root } = payload;
    const parentId = typeof parent === "string" ? parent : null;
    return {
      id: file.sessionId,
      parentId,
      rootId: typeof root === "string" ? root : file.sessionId,
      at,
      payload,
    };
  }
  return null;
}

function sessionOf(
  { id, rootId, at, payload }: Meta,
  parent: SessionRecord | undefined,
  node: string,
): SessionRecord {
  const text = (name: string): string | null => {
    const value = payload[name];
    return typeof value === "string" ? value : null;
  };
  const cwd = text("cwd") ?? "/";
  const agent = text("agent") ?? "unknown";
  const source = Source.safeParse(payload["source"]);
  return {
    ...ENDED,
    id,
    rootId,
    parentId: parent?.id ?? null,
    shortId: shortId(id),
    name: text("name"),
    depth: parent === undefined ? 0 : parent.depth + 1,
    spawnConfig: {},
    effective: effectiveOf(payload["effective"], { agent, cwd, node }),
    title: null,
    agent,
    profile: text("profile") ?? "default",
    model: text("model"),
    cwd,
    node,
    origin: "managed",
    source: source.success ? source.data : "import",
    scope: text("scope") ?? "default",
    callback: CallbackConfig.parse({ enabled: false }),
    onParentEnd: "detach",
    evidence: { state: "ended", reason: NOTE, confidence: "certain", at },
    createdAt: at,
    updatedAt: at,
    lastActivityAt: at,
    endedAt: at,
  };
}

function effectiveOf(
  value: unknown,
  { agent, cwd, node }: { agent: string; cwd: string; node: string },
): Effective {
  const found = Effective.safeParse(value);
  if (found.success) return found.data;
  return unmanagedEffective({ agent, node, cwd, permission: "read-only" });
}

/** The field values that all rebuilt sessions share. A rebuilt session counts as ended. */
const ENDED = {
  ...NEW_SESSION,
  seen: true,
  endReason: "rebuilt",
  endNote: NOTE,
  key: null,
  keyCaller: null,
  keyHash: null,
} as const satisfies Partial<SessionRecord>;
