import type { Limits, RefusalCode } from "../contract/index.ts";
import { oneLine } from "../text/fence.ts";
import { count } from "../text/quantity.ts";

/** The state of the tree at the moment of a spawn, read under the tree's lock. */
export interface SpawnFacts {
  readonly parentDepth: number;
  readonly openChildren: readonly { name: string }[];
  readonly openSessions: number;
  readonly spawnsLastMinute: number;
  readonly spawnsEver: number;
  /** For a chain: the number of sessions it spawns, one after another. */
  readonly steps?: number;
}

export type CountFacts = Pick<SpawnFacts, "openChildren" | "openSessions">;
export type PaceFacts = Pick<SpawnFacts, "spawnsLastMinute" | "spawnsEver" | "steps">;

export interface LimitRefusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly details: Record<string, unknown>;
}

/** Lowers each limit to its value in `counts` if that value is smaller. */
export function lowered<L extends Partial<Limits>>(limits: L, counts: Partial<Limits> | undefined): L {
  const least = Object.entries(counts ?? {}).map(([key, value]) => [
    key,
    Math.min(value ?? Infinity, (limits as Record<string, number | undefined>)[key] ?? Infinity),
  ]);
  return { ...limits, ...Object.fromEntries(least) };
}

/** Returns the limit that forbids one more child, with its current use and what to do next; null if none. */
export function spawnLimit(facts: SpawnFacts, limits: Limits): LimitRefusal | null {
  if (facts.parentDepth + 1 > limits.depthMax) {
    return refusal("limit_depth", {
      limit: limits.depthMax,
      used: facts.parentDepth,
      what: `This session is ${count(facts.parentDepth, "generation")} below its root, and at most ${limits.depthMax} are allowed.`,
      next: "Do this part yourself, or report to your parent what should be delegated.",
    });
  }
  return countLimit(facts, limits) ?? paceLimit(facts, limits);
}

export function countLimit(facts: CountFacts, limits: Limits): LimitRefusal | null {
  const { length } = facts.openChildren;
  if (length >= limits.childrenMax) {
    return refusal("limit_children", {
      limit: limits.childrenMax,
      used: length,
      what: `${length} of ${limits.childrenMax} children are at work (${holders(facts.openChildren)}). Finished children do not count.`,
      next: "Wait for one with wait_session, cancel one with cancel_session, or do this part yourself.",
    });
  }
  if (facts.openSessions >= limits.sessionsMax) {
    return refusal("limit_sessions", {
      limit: limits.sessionsMax,
      used: facts.openSessions,
      what: `${facts.openSessions} of ${limits.sessionsMax} sessions of this family are at work. Finished sessions do not count.`,
      next: "Wait for one to finish, cancel one with cancel_session, or do this part yourself.",
    });
  }
  return null;
}

/** Returns the exceeded limit on spawns, per minute or in the tree's lifetime; null if there is none. */
export function paceLimit(
  facts: PaceFacts,
  limits: Pick<Limits, "spawnsPerMinuteMax" | "spawnsMax">,
): LimitRefusal | null {
  const { spawnsLastMinute, spawnsEver, steps = 1 } = facts;
  const more = steps === 1 ? "" : `, this chain would add ${steps}`;
  if (spawnsLastMinute + steps > limits.spawnsPerMinuteMax) {
    return refusal("limit_rate", {
      limit: limits.spawnsPerMinuteMax,
      used: spawnsLastMinute,
      what: `This family has spawned ${spawnsLastMinute} sessions in the last minute${more}, and at most ${limits.spawnsPerMinuteMax} are allowed.`,
      next: "Continue with other work and spawn again in a minute. Prefer one larger task to many small ones.",
    });
  }
  if (spawnsEver + steps > limits.spawnsMax) {
    return refusal("limit_spawns", {
      limit: limits.spawnsMax,
      used: spawnsEver,
      what: `This family has spawned ${spawnsEver} sessions in total${more}, and at most ${limits.spawnsMax} are allowed.`,
      next: "Use tell_child to give more work to a child that has finished, or tell the user.",
    });
  }
  return null;
}

function refusal(
  code: RefusalCode,
  { limit, used, what, next }: { limit: number; used: number; what: string; next: string },
): LimitRefusal {
  return { code, message: `${what} ${next}`, details: { limit, used } };
}

function holders(children: readonly { name: string }[]): string {
  const names = children.slice(0, 3).map((child) => oneLine(child.name, 40));
  return children.length > 3 ? `${names.join(", ")}, …` : names.join(", ");
}
