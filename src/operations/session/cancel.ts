import type { CancelOutput } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { isAtWork } from "../../domain/imported.ts";
import { cancelSubtree, detach as detachSession } from "../../kernel/cancel.ts";
import { callbackKey, endKey } from "../../kernel/callback.ts";
import { closeIfOver } from "../../kernel/round.ts";
import { type StopReport, stopReport } from "../../kernel/stop-report.ts";
import type { SessionRecord, Tx, TurnRecord } from "../../store/port/store.ts";
import { replyCarrier, takeIntoReply } from "../wait/reply-carrier.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { requireBelow, resolve } from "../access/resolve.ts";
import { writeAs } from "../access/authority.ts";
import { until } from "../wait/until.ts";
import { describe, viewOne } from "../read/view.ts";

/** How long the reply waits for processes to end. */
const STOP_MS = 5_000;

export const cancel: Handler<"cancel"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  await requireBelow(deps, caller, session);
  refuseOthers(session);
  return input.turnOnly
    ? cancelTurn(deps, caller, { session, reason: input.reason ?? null })
    : cancelAll(deps, caller, { session, reason: input.reason ?? null });
};

/** The child keeps its lineage, but no longer calls back and is no longer cancelled with its parent. */
export const detach: Handler<"detach"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const row = await deps.store.write(session.rootId, async (tx) => {
    const fresh = await tx.sessions.byId(session.id);
    if (fresh === null || fresh.endedAt !== null) {
      throw new Refusal("session_ended", `${describe(session)} has ended already.`);
    }
    if (fresh.parentId === null || fresh.detachedAt !== null) return fresh;
    const now = deps.now();
    await detachSession(tx, fresh, now);
    await closeIfOver(tx, fresh.parentId, now);
    return fresh;
  });
  return { session: await viewOne(deps, row) };
};

function refuseOthers(session: SessionRecord): void {
  if (session.origin !== "imported") return;
  const does = isAtWork(session.evidence.state)
    ? `Stop it in ${session.agent} itself.`
    : `It is not at work: ${session.evidence.reason}.`;
  throw new Refusal(
    "not_available",
    `Session ${session.shortId} was read from disk: Kinfold does not run its process and cannot stop it. ${does}`,
    { sessionId: session.id },
  );
}

async function cancelAll(
  deps: OperationDeps,
  caller: CallerContext,
  { session, reason }: { session: SessionRecord; reason: string | null },
): Promise<CancelOutput> {
  const { rootId } = session;
  const result = await writeAs(deps, { caller, rootId }, async (tx) => {
    const fresh = (await tx.sessions.byId(session.id)) ?? session;
    const order = { by: byWhom(caller, fresh), reason, now: deps.now() };
    const cancelled = await cancelSubtree(tx, fresh, order);
    const taken = await takeOwnCallback(tx, caller, {
      session: fresh,
      key: await endKey(tx, fresh),
      now: order.now,
    });
    return { cancelled, taken };
  });
  deps.reached("cancel.committed");
  const { marked, notOurs, wasOpen, wereOpen } = result.cancelled;
  const ends = await stopped(deps, rootId, marked);
  return {
    sessionId: session.id,
    name: session.name,
    cancelled: wasOpen,
    stopped: wereOpen,
    closed: marked.length - wereOpen,
    stopping: ends.stopping,
    taken: result.taken === null ? [] : [result.taken.id],
    deliveryId: result.taken?.deliveryId ?? null,
    left: [
      ...ends.left,
      ...notOurs.filter(mayRun).map((each) => ({
        sessionId: each.id,
        what: `${describe(each)} is ${each.origin}: Kinfold does not run its process`,
        pid: null,
      })),
    ],
  };
}

function mayRun({ origin, evidence, endedAt }: SessionRecord): boolean {
  return origin === "imported" ? isAtWork(evidence.state) : endedAt === null;
}

/**
 * Takes the callback about the cancellation into this reply, so that the parent does not get it twice. A
 * callback about an earlier end is still delivered.
 */
async function takeOwnCallback(
  tx: Tx,
  caller: CallerContext,
  { session, key, now }: { session: SessionRecord; key: string; now: number },
): Promise<{ id: string; deliveryId: string } | null> {
  if (caller.kind !== "session" || session.parentId !== caller.id) return null;
  const message = await tx.messages.byCallbackKey(caller.id, key);
  const carrier = await replyCarrier(tx, caller);
  if (message === null || message.metadata["outcome"] !== "cancelled") return null;
  return (await takeIntoReply(tx, message, { carrier, now })) ? message : null;
}

async function cancelTurn(
  deps: OperationDeps,
  caller: CallerContext,
  { session, reason }: { session: SessionRecord; reason: string | null },
): Promise<CancelOutput> {
  const { rootId } = session;
  const turn = await writeAs(deps, { caller, rootId }, async (tx) => {
    const running = await tx.turns.running(session.id);
    if (running === null) return null;
    const order = { stopBy: byWhom(caller, session), stopNote: reason };
    await tx.turns.patchRunning(running.id, running.fence, order);
    tx.append({
      sessionId: session.id,
      type: "notice",
      text: `turn ${running.index} of session ${session.id} is being stopped`,
      data: { turnId: running.id, by: order.stopBy },
      at: deps.now(),
    });
    tx.wake(session.id);
    return running;
  });
  deps.reached("cancel.committed");
  const settled =
    turn === null
      ? null
      : await until(deps, { rootId, timeoutMs: STOP_MS }, async () => {
          const now = await deps.store.read.turns.byId(turn.id);
          return now?.status === "running" ? null : now;
        });
  const taken = settled === null ? null : await takeStopped(deps, caller, { session, turn: settled });
  return {
    sessionId: session.id,
    name: session.name,
    cancelled: turn !== null,
    stopped: settled === null ? 0 : 1,
    closed: 0,
    stopping: turn !== null && settled === null ? [session.id] : [],
    left: [],
    taken: taken === null ? [] : [taken.id],
    deliveryId: taken?.deliveryId ?? null,
  };
}

function takeStopped(
  deps: OperationDeps,
  caller: CallerContext,
  { session, turn }: { session: SessionRecord; turn: TurnRecord },
): Promise<{ id: string; deliveryId: string } | null> {
  const ofRound = { ...session, round: turn.round };
  const key = callbackKey(ofRound, session.callback.when === "turn" ? turn : null);
  return deps.store.write(session.rootId, (tx) =>
    takeOwnCallback(tx, caller, { session, key, now: deps.now() }),
  );
}

/** Waits up to `STOP_MS` until each process has ended or proved impossible to stop. */
async function stopped(
  deps: OperationDeps,
  rootId: string,
  sessions: readonly SessionRecord[],
): Promise<StopReport> {
  const look = (): Promise<StopReport> => stopReport(deps.store.read, sessions);
  const done = await until(deps, { rootId, timeoutMs: STOP_MS }, async () => {
    const known = await look();
    return known.stopping.length === 0 ? known : null;
  });
  return done ?? look();
}

function byWhom(caller: CallerContext, session: SessionRecord): string {
  if (caller.kind === "person") return "the user";
  if (caller.kind === "outside") return `${caller.name} (an API key)`;
  return caller.id === session.parentId ? "its parent" : "a session above it";
}
