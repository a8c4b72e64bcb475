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

/** A step that has not begun. Everything about it was decided when the chain was requested. */
export interface ChainStep {
  readonly task: string;
  readonly effective: Effective;
  /** The instructions of the step's profile; null if there are none. */
  readonly instructions?: string | null;
  /** Number of characters of the parent's transcript that the step inherits. */
  readonly tailChars?: number;
}

/** The data of a chain that each step's row passes to the next step. */
export interface Chain {
  readonly chain: readonly ChainStep[];
  readonly chainId: string;
  /** The tree's spawn limits when the chain was requested. */
  readonly chainPace: Pick<Limits, "spawnsPerMinuteMax" | "spawnsMax">;
}

/** Returns a chain's remaining steps, which are in the row of the current step. */
function stepsLeft(session: SessionRecord): readonly ChainStep[] {
  const { chain } = session.spawnConfig;
  return Array.isArray(chain) ? (chain as ChainStep[]) : [];
}

/** Returns the spawn limit that stops the next step; null if the step may begin or no step is left. */
export async function chainProblem(tx: Tx, done: SessionRecord, now: number): Promise<string | null> {
  const left = stepsLeft(done).length;
  const pace = done.spawnConfig["chainPace"] as Chain["chainPace"] | undefined;
  if (left === 0 || pace === undefined) return null;
  const spawnsLastMinute = await tx.sessions.spawnedSince(done.rootId, now - 60_000);
  const spawnsEver = (await tx.tree.byId(done.rootId))?.spawnCount ?? 0;
  const refusal = paceLimit({ spawnsLastMinute, spawnsEver }, pace);
  if (refusal === null) return null;
  return `its chain ended here, ${count(left, "step")} before its end: ${refusal.code}`;
}

/**
 * Begins the next step in the transaction that completes the previous step's round. `{previous}` in the task
 * is replaced by the previous step's report, marked as data. Returns null if no step is left.
 */
export async function beginNextStep(tx: Tx, done: SessionRecord, now: number): Promise<SessionRecord | null> {
  const [next, ...rest] = stepsLeft(done);
  if (next === undefined) return null;
  const { report } = await reportOfTurns(tx, await tx.turns.ofRound(done.id, done.round));
  const previous = fence(report ?? "", newDeliveryId(), 65_536).text;
  const task = next.task.replaceAll("{previous}", () => previous);
  const { effective } = next;
  const { agent, profile, model } = effective;
  const prompt = withInstructions(task, { profile, instructions: next.instructions ?? null });
  const id = newId();
  const step: SessionRecord = {
    ...done,
    ...NEW_SESSION,
    // The step gets the previous step's position in the tree.
    detachedAt: done.detachedAt,
    spawnTurnId: done.spawnTurnId,
    spawnEntryIndex: done.spawnEntryIndex,
    id,
    shortId: shortId(id),
    name: null,
    title: excerpt(next.task, 80),
    agent,
    profile,
    model,
    effective,
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
  const data = { parentId: step.parentId, agent, model, depth: step.depth, name: null };
  tx.append({ sessionId: id, type: "session.created", data, at: now });
  if (given !== null) await appendEntries(tx, id, [given.entry]);
  const sender = { senderKind: "session", senderId: done.parentId } as const;
  await admit(tx, step, { now, kind: "prompt", ...sender, delivery: "followUp", body: prompt });
  return step;
}

const TAIL_CHARS = 3_000;

/** Returns what a later step inherits from the chain's parent, as of the time when the step begins. */
async function inheritedBy(tx: Tx, step: SessionRecord, tailChars: number): Promise<Inherited | null> {
  const { inherit: mode } = step.effective;
  const parent = mode === "none" || step.parentId === null ? null : await tx.sessions.byId(step.parentId);
  if (parent === null || mode === "none") return null;
  return inherited(tx, { child: step, parent, mode, tailChars, now: step.createdAt });
}
