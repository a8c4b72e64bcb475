import { HEADINGS } from "../../domain/inheritance.ts";
import { type InheritedData, ownBrief } from "../../kernel/inherit.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import type { AgentSlot } from "../agent/slot.ts";

/**
 * Returns the context for the first prompt of a conversation: the inherited context, and the session's own
 * brief if its earlier conversation is lost. A loaded conversation already has this context, unless its first
 * prompt never arrived.
 */
export async function firstPromptContext(
  deps: EngineDeps,
  { session, agent }: Pick<AgentSlot, "session" | "agent">,
  turn: TurnRecord,
): Promise<string | null> {
  const { read } = deps.store;
  const isFirst = turn.index === 0;
  const replay = agent?.replay ?? null;
  const hasIt = replay?.userTexts.some((text) => text.includes(HEADINGS.parent)) === true;
  if (replay !== null && (!isFirst || hasIt)) return null;
  const given = await inheritedOf(deps, session);
  const { tailChars } = deps.config;
  const brief = { tailChars, fenceId: turn.id.slice(-8), withoutTurnId: turn.id };
  const own = isFirst ? null : await ownBrief(read, session, brief);
  const parts = [given?.isSent === true ? given.text : null, own].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join("\n\n");
}

/** Returns the conversation from which the session is forked; null once the session has its own. */
export async function forkOf(deps: EngineDeps, session: SessionRecord): Promise<string | null> {
  if (session.effective.inherit !== "fork" || session.agentSessionId !== null) return null;
  return (await inheritedOf(deps, session))?.forkOf ?? null;
}

async function inheritedOf(
  deps: EngineDeps,
  session: SessionRecord,
): Promise<(InheritedData & { text: string }) | null> {
  if (session.effective.inherit === "none") return null;
  const [entry] = await deps.store.read.entries.page(session.id, { after: -1, limit: 1 });
  if (entry?.kind !== "inherited") return null;
  return { ...(entry.body.input as InheritedData), text: entry.body.text };
}
