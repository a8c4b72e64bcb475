import type { Effective, Limits } from "../contract/index.ts";
import { shortId } from "../contract/short-id.ts";
import { paceLimit } from "../domain/limit.ts";
import { fence } from "../text/fence.ts";
import { count } from "../text/quantity.ts";
import type { SessionRecord, Tx } from "../store/port/store.ts";
import { admit } from "./admit.ts";
import { reportOfTurns } from "./callback.ts";
import { appendEntries } from "./entry.ts";
import { newDeliveryId, newId } from "../system/id.ts";
import { type Inherited, inherited } from "./inherit.ts";
import { NEW_SESSION } from "../store/port/new-session.ts";
import { excerpt } from "../secrets/redact.ts";
import { withInstructions } from "../domain/inherited-text.ts";

/** A step that has not begun: everything about it was decided when the chain was asked for. */
export interface ChainStep {
  readonly task: string;
  readonly effective: Effective;
  /** How its profile works; null where that says nothing. */
  readonly instructions?: string | null;
  /** How much of the parent's transcript it inherits. */
  readonly tailChars?: number;
}

/** What the row of a chain's first step carries on to the next ones. */
export interface Chain {
  readonly chain: readonly ChainStep[];
  readonly chainId: string;
  /** How often its tree may spawn, as it was when the chain was asked for. */
  readonly chainPace: Pick<Limits, "spawnsPerMinuteMax" | "spawnsMax">;
}

/** A chain's remaining steps stand in the row of the step at work. */
export function stepsLeft(session: SessionRecord): readonly ChainStep[] {
  const { chain } = session.spawnConfig;
  return Array.isArray(chain) ? (chain as ChainStep[]) : [];
}

/** Why no further step may begin: others of the tree spawned while it ran. Null where one may, or none is left. */
export async function chainProblem(tx: Tx, done: SessionRecord, now: number): Promise<string | null> {
  const left = stepsLeft(done).length;
  const pace = done.spawnConfig["chainPace"] as Chain["chainPace"] | undefined;
  if (left === 0 || pace === undefined || done.outcome !== "completed") return null;
  const refusal = paceLimit(
    {
      spawnsLastMinute: await tx.sessions.spawnedSince(done.rootId, now - 60_000),
      spawnsEver: (await tx.tree.byId(done.rootId))?.spawnCount ?? 0,
    },
    pace,
  );
  return refusal === null
    ? null
    : `its chain ended here, ${count(left, "step")} before its end: ${refusal.code}`;
}

/**
 * The completed round of a step begins the next one, in the same transaction; `{previous}` in its
 * task becomes the answer before, as data. Null where the chain ends here.
 */
export async function beginNextStep(tx: Tx, done: SessionRecord, now: number): Promise<SessionRecord | null> {
  const [next, ...rest] = stepsLeft(done);
  if (next === undefined || done.outcome !== "completed") return null;
  const { report } = await reportOfTurns(tx, await tx.turns.ofRound(done.id, done.round));
  const previous = fence(report ?? "", newDeliveryId(), 65_536).text;
  const task = next.task.replaceAll("{previous}", () => previous);
  const { profile } = next.effective;
  const prompt = withInstructions(task, { profile, instructions: next.instructions ?? null });
  const id = newId();
  const step: SessionRecord = {
    ...done,
    ...NEW_SESSION,
    // It stands where the step before it stood.
    detachedAt: done.detachedAt,
    spawnTurnId: done.spawnTurnId,
    spawnEntryIndex: done.spawnEntryIndex,
    id,
    shortId: shortId(id),
    name: null,
    title: excerpt(next.task, 80),
    agent: next.effective.agent,
    profile: next.effective.profile,
    model: next.effective.model,
    effective: next.effective,
    spawnConfig: { ...done.spawnConfig, prompt: excerpt(prompt, 400), chain: rest },
    evidence: { state: "queued", reason: "accepted, not started yet", confidence: "certain", at: now },
    createdAt: now,
    updatedAt: now,
    lastActivityAt: now,
    key: null,
    keyCaller: null,
    keyHash: null,
  };
  const given = await inheritedBy(tx, step, next.tailChars ?? TAIL_CHARS);
  if (given === null) step.effective = { ...step.effective, inherit: "none" };
  await tx.sessions.add(step);
  const { chain: _, ...asked } = done.spawnConfig;
  await tx.sessions.patch(done.id, { spawnConfig: asked });
  await tx.tree.countSpawn();
  const data = {
    parentId: step.parentId,
    agent: step.agent,
    model: step.model,
    depth: step.depth,
    name: null,
  };
  tx.append({ sessionId: id, type: "session.created", text: null, data, at: now });
  if (given !== null) await appendEntries(tx, id, [given.entry]);
  await admit(tx, step, {
    now,
    kind: "prompt",
    senderKind: "session",
    senderId: done.parentId,
    delivery: "followUp",
    body: prompt,
  });
  return step;
}

const TAIL_CHARS = 3_000;

/** A later step inherits from the chain's parent as it is when the step begins. */
async function inheritedBy(tx: Tx, step: SessionRecord, tailChars: number): Promise<Inherited | null> {
  const { inherit: mode } = step.effective;
  const parent = mode === "none" || step.parentId === null ? null : await tx.sessions.byId(step.parentId);
  if (parent === null || mode === "none") return null;
  return inherited(tx, { child: step, parent, mode, tailChars, now: step.createdAt });
}
