import type { ChildEnd, InputOf, WaitChildrenOutput } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import { type CallbackData, renderBlock } from "../../domain/callback.ts";
import { oneLine } from "../../text/fence.ts";
import { callbackData, callbackKey } from "../../kernel/callback.ts";
import { isStopping, withLeft } from "../../kernel/stop-report.ts";
import { newDeliveryId } from "../../system/id.ts";
import type { SessionRecord, Tx } from "../../store/port/store.ts";
import { blocking } from "./blocking.ts";
import { replyCarrier, type ReplyCarrier, takeIntoReply } from "./reply-carrier.ts";
import { stepsOf } from "../spawn/chain-step.ts";
import { asking, takeAttention } from "./attention.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { isBelow, resolve } from "../access/resolve.ts";
import { decodeCursor, encodeCursor, waitTimeMs } from "./cursor.ts";
import { callerSession } from "../access/authority.ts";
import { describe } from "../read/view.ts";

/** The size limit of all reports in one reply together. */
const REPLY_BYTES = 20_480;
const ERROR_CHARACTERS = 400;

/** Waits for descendants. The reply replaces the callbacks of the caller's own children, but no others. */
export const waitChildren: Handler<"waitChildren"> = async (deps, caller, { input, call }) => {
  const self = callerSession(caller);
  if (self === null || caller.kind !== "session") {
    throw new Refusal("forbidden", "Only a session waits for its children; a person uses GET …/wait.");
  }
  const cursor = decodeCursor(input.cursor);
  const ids = await targets(deps, caller, { self, ...input, cursor });
  const timeMs = waitTimeMs(input, cursor.misses);
  const started = performance.now();
  const look = async (): Promise<Split | null> => {
    const split = await splitByEnd(deps, ids);
    if (enough(input.until, split.over.length, split.ids.length)) return split;
    return (await asking(deps, self, { ids: split.ids, shown: cursor.shown })).length > 0 ? split : null;
  };
  const found = await blocking(deps, caller, { look, timeMs, signal: call.signal });
  const { over, working, ids: waited } = found ?? (await splitByEnd(deps, ids));
  if (call.signal.aborted) throw new Refusal("shutting_down", "The caller has gone.");
  const done = await takeEnds(deps, caller, { self, ended: over });
  const fresh = await asking(deps, self, { ids: waited, shown: cursor.shown });
  const needsYou = await takeAttention(deps, caller, { self, triggers: fresh });
  deps.reached("wait.taken");
  const timedOut = found === null;
  if (input.sourceForm) refuseSourceForm(done, [...over, ...working], { input, timedOut });
  const isNews = done.length > 0 || needsYou.length > 0;
  const misses = isNews ? 0 : cursor.misses + 1;
  const shown = [...cursor.shown, ...needsYou.map((each) => shortId(each.triggerId))];
  return {
    done,
    needsYou,
    working: await Promise.all(working.map((session) => describeWork(deps, session))),
    timedOut,
    capped: timedOut && timeMs < (input.timeoutMs ?? timeMs + 1),
    waitedMs: Math.round(performance.now() - started),
    cursor: encodeCursor({ ids: working.map((each) => each.id), misses, shown }),
    taken: [...done, ...needsYou].flatMap((each) => each.takenId ?? []),
  };
};

async function targets(
  deps: OperationDeps,
  caller: CallerContext,
  { self, ...input }: { self: SessionRecord; ids?: string[] | undefined; cursor: { ids: string[] } },
): Promise<string[]> {
  const refs = input.ids ?? (input.cursor.ids.length > 0 ? input.cursor.ids : null);
  if (refs !== null) {
    const found = await Promise.all(refs.map((ref) => resolve(deps, caller, ref)));
    for (const session of found) await requireWaitable(deps, self, session);
    return [...new Set(found.map((session) => session.id))];
  }
  const children = await deps.store.read.sessions.children(self.id);
  const unread = await deps.store.read.messages.ofSession(self.id, ["queued"]);
  const ended = new Set(unread.map((message) => message.metadata["childSessionId"]));
  const wanted = children.filter((child) => child.roundOpen || ended.has(child.id));
  return wanted.map((child) => child.id);
}

async function requireWaitable(
  deps: OperationDeps,
  self: SessionRecord,
  session: SessionRecord,
): Promise<void> {
  const { read } = deps.store;
  if (session.id === self.id || (await isBelow(read, self, session.id))) {
    const who = session.id === self.id ? "yourself" : "your own parent or one above it";
    throw new Refusal(
      "wait_on_ancestor",
      `You cannot wait for ${who}: ${describe(session)} may be waiting for you, and neither would ever end. End your turn instead.`,
      { sessionId: session.id },
    );
  }
  if (await isBelow(read, session, self.id)) return;
  throw new Refusal(
    "not_a_child",
    `${describe(session)} is not below you. You may wait for your children and those below them; list_sessions shows them.`,
  );
}

type TakenEnd = ChildEnd & { takenId: string | null };

export async function takeEnds(
  deps: OperationDeps,
  caller: CallerContext & { kind: "session" },
  { self, ended }: { self: SessionRecord; ended: readonly SessionRecord[] },
): Promise<TakenEnd[]> {
  if (ended.length === 0) return [];
  return deps.store.write(self.rootId, async (tx) => {
    const carrier = await replyCarrier(tx, caller);
    const ends: TakenEnd[] = [];
    for (const child of ended) {
      const share = Math.min(4_096, Math.floor(REPLY_BYTES / ended.length));
      ends.push(await takeOne(tx, self, { child, carrier, now: deps.now(), share }));
    }
    return ends;
  });
}

async function takeOne(
  tx: Tx,
  self: SessionRecord,
  { child, ...at }: { child: SessionRecord; carrier: ReplyCarrier | null; now: number; share: number },
): Promise<TakenEnd> {
  const lastTurn = child.callback.when === "turn" ? await tx.turns.last(child.id) : null;
  const message =
    child.parentId === self.id
      ? await tx.messages.byCallbackKey(self.id, callbackKey(child, lastTurn))
      : null;
  const wasTaken = message !== null && (await takeIntoReply(tx, message, at));
  const data = await withLeft(
    tx,
    child,
    (message?.data as unknown as CallbackData | null | undefined) ??
      (await callbackData(tx, child, {
        end: {
          outcome: child.outcome ?? "cancelled",
          reason: child.outcomeReason,
          by: child.endBy,
          now: child.roundClosedAt ?? at.now,
        },
      })),
  );
  const deliveryId = message?.deliveryId ?? newDeliveryId();
  const repeated = wasTaken && message.repeated;
  return {
    sessionId: child.id,
    shortId: child.shortId,
    name: child.name,
    outcome: data.outcome,
    result: data.lastMessage,
    lastWords: data.lastWords ?? null,
    error: data.outcome === "completed" ? null : (data.reason ?? data.outcome),
    deliveryId,
    delivered: message !== null && !wasTaken,
    block: renderBlock(data, { deliveryId, stillAtWork: [], wakeable: true, repeated }, at.share),
    takenId: wasTaken ? message.id : null,
  };
}

function refuseSourceForm(
  done: readonly TakenEnd[],
  sessions: readonly SessionRecord[],
  { input, timedOut }: { input: InputOf<"waitChildren">; timedOut: boolean },
): void {
  const [end] = done;
  const [session] = sessions;
  if (end !== undefined && end.outcome !== "completed") {
    // This refusal carries the callback. If the refusal does not arrive, the callback goes back to the inbox.
    throw new Refusal("child_failed", oneLine(end.error ?? end.outcome, ERROR_CHARACTERS), {
      sessionId: end.sessionId,
      outcome: end.outcome,
      deliveryId: end.deliveryId,
      taken: end.takenId === null ? [] : [end.takenId],
    });
  }
  const asked = input.timeoutMs;
  if (!timedOut || session === undefined || asked === undefined || asked > input.capMs) return;
  throw new Refusal("did_not_complete", `session ${session.id} did not complete within ${asked}ms`, {
    sessionId: session.id,
    timeoutMs: asked,
  });
}

async function describeWork(
  deps: OperationDeps,
  session: SessionRecord,
): Promise<WaitChildrenOutput["working"][number]> {
  const { id: sessionId, shortId, name, evidence } = session;
  const agoS = Math.max(0, Math.round((deps.now() - evidence.at) / 1000));
  return { sessionId, shortId, name, doing: `${evidence.reason}, ${agoS} s ago` };
}

interface Split {
  readonly ids: readonly string[];
  readonly over: readonly SessionRecord[];
  readonly working: readonly SessionRecord[];
}

/** A cancelled session counts as over once it is known whether its processes have ended. */
async function splitByEnd(deps: OperationDeps, ids: readonly string[]): Promise<Split> {
  const over: SessionRecord[] = [];
  const working: SessionRecord[] = [];
  const steps = await stepsOf(deps, ids);
  for (const session of steps) {
    const hasEnd = isOver(session) && !(await isStopping(deps.store.read, session, deps.now()));
    (hasEnd ? over : working).push(session);
  }
  return { ids: steps.map((each) => each.id), over, working };
}

function isOver(session: SessionRecord): boolean {
  return session.endedAt !== null || (!session.roundOpen && session.round > 0);
}

function enough(until: "any" | "all" | number, done: number, all: number): boolean {
  if (done === all) return true;
  return until === "all" ? false : done >= (until === "any" ? 1 : until);
}
