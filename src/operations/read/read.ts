import { stat } from "node:fs/promises";
import path from "node:path";
import type { Session } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { mergeReceipts } from "../../domain/receipt.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import type { Handler } from "../deps.ts";
import { entryPage } from "./entry-page.ts";
import { isFamily, resolve, resolveInScope } from "../access/resolve.ts";
import { viewTriggers } from "../ask/respond.ts";
import { transcriptOf } from "./transcript.ts";
import { viewEntry, viewMessages, viewOne, viewSessions, viewTurn } from "./view.ts";
import { callerSession } from "../access/authority.ts";

export const get: Handler<"get"> = async (deps, caller, { input }) => ({
  session: await viewOne(deps, await resolve(deps, caller, input.id)),
});

export const tree: Handler<"tree"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const rows = await deps.store.read.sessions.tree(session.rootId);
  return { sessions: await viewSessions(deps, inTreeOrder(rows)) };
};

export const children: Handler<"children"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const rows = await deps.store.read.sessions.children(session.id);
  return { sessions: await viewSessions(deps, rows) };
};

export const turns: Handler<"turns"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const beforeIndex = input.cursor === undefined ? {} : { beforeIndex: cursorNumber(input.cursor) };
  const rows = await deps.store.read.turns.ofSession(session.id, { ...beforeIndex, limit: input.limit });
  const views = await Promise.all(rows.map((row) => viewTurn(deps.store.read, row)));
  const last = rows.at(-1);
  const isMore = rows.length === input.limit && last !== undefined && last.index > 0;
  return { turns: views, cursor: isMore ? String(last.index) : null };
};

export const turn: Handler<"turn"> = async (deps, caller, { input }) => {
  const row = await deps.store.read.turns.byId(input.id);
  if (row === null) {
    throw new Refusal("not_found", `No turn "${input.id.slice(0, 80)}". A session's turns have their ids.`);
  }
  await resolve(deps, caller, row.sessionId);
  return { turn: await viewTurn(deps.store.read, row) };
};

/** A page is cut at this size, so a page of long entries has fewer entries than requested. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;

export const entries: Handler<"entries"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const { before, after, limit } = input;
  const page = {
    limit,
    bytesMax: PAGE_BYTES_MAX,
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
  };
  const rows = await entryPage(deps.store.read, session.id, page);
  return {
    entries: rows.map(viewEntry),
    first: rows[0]?.index ?? 0,
    last: rows.findLast(({ body }) => body.open !== true)?.index ?? -1,
    total: session.entryCount,
    keptFrom: await deps.store.read.retention.keptFrom(session.id),
  };
};

export const transcript: Handler<"transcript"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  return { text: await transcriptOf(deps, session, { format: input.format, turn: null }) };
};

export const inbox: Handler<"inbox"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const statuses = input.all ? (["queued", "taken", "landed", "void"] as const) : (["queued"] as const);
  const rows = await deps.store.read.messages.ofSession(session.id, statuses);
  return { messages: await viewMessages(rows) };
};

export const triggers: Handler<"triggers"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const rows = await deps.store.read.triggers.ofSession(session.id);
  return { triggers: await viewTriggers(rows) };
};

export const receipt: Handler<"receipt"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const rows = await deps.store.read.turns.ofRound(session.id, session.round);
  return { receipt: mergeReceipts(rows.flatMap((row) => (row.receipt === null ? [] : [row.receipt]))) };
};

export const rollout: Handler<"rollout"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const file = deps.rolloutPath(session);
  return {
    path: file,
    exists: await stat(file).then(
      () => true,
      () => false,
    ),
  };
};

export const list: Handler<"list"> = async (deps, caller, { input }) => {
  const self = callerSession(caller);
  const visible = caller.visible;
  const before = input.cursor === undefined ? null : listCursor(input.cursor);
  const rows = await deps.store.read.sessions.list({
    visible,
    limit: input.limit,
    ...(input.parent === undefined
      ? {}
      : { parentId: (await resolveInScope(deps, caller, input.parent)).id }),
    ...(input.root === undefined ? {} : { rootId: (await resolveInScope(deps, caller, input.root)).rootId }),
    ...(input.origin === undefined ? {} : { origin: input.origin }),
    ...(input.agent === undefined ? {} : { agent: input.agent }),
    ...(input.unseen === undefined ? {} : { unseen: input.unseen }),
    ...(input.status === undefined ? {} : { ended: input.status === "ended" }),
    ...(input.status === "running" || input.status === "waiting" ? { atWork: true } : {}),
    ...(before === null ? {} : { before }),
  });
  const views = (await viewSessions(deps, rows)).map((view) => (isFamily(self, view) ? view : outline(view)));
  const wanted = views.filter((view) => input.status === undefined || view.status === input.status);
  const last = rows.at(-1);
  const isMore = rows.length === input.limit && last !== undefined;
  return { sessions: wanted, cursor: isMore ? `${last.createdAt}.${last.id}` : null };
};

/** Shows only the existence and state of another family's session, nothing that was said to it or by it. */
function outline(view: Session): Session {
  const { state, confidence, at } = view.evidence;
  return {
    ...view,
    spawnConfig: {},
    evidence: { state, reason: state, confidence, at },
    outcomeReason: null,
    agentSessionId: null,
    callback: { ...view.callback, template: null },
  };
}

/** Returns the caller's family: its parent, itself and all its descendants, in tree order. */
export const family: Handler<"family"> = async (deps, caller, { input }) => {
  const self = callerSession(caller);
  if (self === null) {
    throw new Refusal("not_found", "Only a session has a family of its own; a person uses GET …/tree.");
  }
  const rows = inTreeOrder(await deps.store.read.sessions.tree(self.rootId));
  const below = new Set([self.id]);
  for (const row of rows) if (row.parentId !== null && below.has(row.parentId)) below.add(row.id);
  const mine = rows.filter((row) => below.has(row.id) || row.id === self.parentId);
  const wanted = mine.filter((row) => fits(row, input.status) || row.id === self.id);
  return {
    you: self.id,
    open: mine.filter((row) => row.roundOpen && row.id !== self.id && row.id !== self.parentId).length,
    unread: await deps.store.read.messages.queuedCount(self.id),
    sessions: await viewSessions(deps, wanted),
    triggers: await viewTriggers(await deps.store.read.triggers.open({ toId: self.id })),
  };
};

export const backup: Handler<"backup"> = async (deps, _caller, { input }) => {
  if (!path.isAbsolute(input.path)) {
    const text = `"${input.path}" is not an absolute path, and the daemon has another working folder. Give the full path of the file.`;
    throw new Refusal("invalid_input", text, { field: "path" });
  }
  const target = path.normalize(input.path);
  const { bytes } = await deps.store.backup(target);
  return { path: target, bytes };
};

function fits(row: SessionRecord, status: "open" | "ended" | "all"): boolean {
  if (status === "all") return true;
  return status === "open" ? row.roundOpen : !row.roundOpen;
}

function inTreeOrder(rows: readonly SessionRecord[]): SessionRecord[] {
  // A session whose parent is not among the rows is treated as a root.
  const ids = new Set(rows.map((row) => row.id));
  const isInside = (id: string | null): id is string => id !== null && ids.has(id);
  const below = Map.groupBy(rows, (row) => (isInside(row.parentId) ? row.parentId : null));
  const walk = (row: SessionRecord): SessionRecord[] => [row, ...(below.get(row.id) ?? []).flatMap(walk)];
  return (below.get(null) ?? []).flatMap(walk);
}

function cursorNumber(cursor: string): number {
  const value = Number(cursor);
  if (Number.isSafeInteger(value)) return value;
  throw new Refusal("invalid_input", `"${cursor}" is not a cursor that this list gave.`);
}

function listCursor(cursor: string): { createdAt: number; id: string } {
  const [createdAt, id] = cursor.split(".");
  if (id === undefined)
    throw new Refusal("invalid_input", `"${cursor}" is not a cursor that this list gave.`);
  return { createdAt: cursorNumber(createdAt ?? ""), id };
}
