import { duration, tokens as tokenWords } from "../../text/quantity.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import type { OutputOf, Session, Trigger } from "../../contract/index.ts";
import { oneLine } from "../../text/fence.ts";
import { reply } from "./reply.ts";

type Family = OutputOf<"family">;

/** The size of a page. A large family does not fit into one reply. */
const PAGE_BYTES = 20 * 1024;

/** Draws the family as a tree, one line per session, for a parent that has lost its context. */
export function familyReply(output: Family, now: number, cursor: string | null): string {
  const from = cursor === null ? 0 : lineOf(cursor);
  const lines = familyLines(output, now).slice(from);
  const page = pageOf(lines);
  const isMore = page.length < lines.length;
  const head = {
    you: shortId(output.you),
    open: output.open,
    unread: output.unread,
    triggers: output.triggers.length,
    ...(isMore && { cursor: `l${from + page.length}` }),
  };
  const left = lines.length - page.length;
  const rest = isMore
    ? `${left} more: list_sessions with cursor "l${from + page.length}", or with status "open".`
    : "";
  return reply(head, ...page, rest);
}

function lineOf(cursor: string): number {
  const line = /^l(\d{1,6})$/.exec(cursor)?.[1];
  if (line !== undefined) return Number(line);
  throw new Refusal(
    "invalid_input",
    `"${oneLine(cursor, 60)}" is not a cursor that list_sessions gave. Leave it out to begin.`,
  );
}

function pageOf(lines: readonly string[]): string[] {
  let bytes = 0;
  const end = lines.findIndex((line) => (bytes += Buffer.byteLength(line) + 1) > PAGE_BYTES);
  return lines.slice(0, end === -1 ? undefined : Math.max(1, end));
}

function familyLines(output: Family, now: number): string[] {
  const { sessions } = output;
  const ids = new Set(sessions.map((session) => session.id));
  const asking = new Map(output.triggers.map((trigger) => [trigger.sessionId, trigger]));
  const below = Map.groupBy(sessions, (session) =>
    session.parentId !== null && ids.has(session.parentId) ? session.parentId : null,
  );
  const lines: string[] = [];
  const draw = (parentId: string | null, indent: string): void => {
    const children = below.get(parentId) ?? [];
    for (const [index, session] of children.entries()) {
      const isLast = index === children.length - 1;
      const branch = parentId === null ? "" : indent + (isLast ? "└ " : "├ ");
      const trigger = asking.get(session.id) ?? null;
      lines.push(branch + line(session, { you: output.you, trigger, now }));
      draw(session.id, parentId === null ? "" : indent + (isLast ? "  " : "│ "));
    }
  };
  draw(null, "");
  return lines;
}

function line(session: Session, at: { you: string; trigger: Trigger | null; now: number }): string {
  const { now, trigger } = at;
  const name = session.name === null ? session.shortId : `"${session.name}" ${session.shortId}`;
  if (session.id === at.you) {
    const place = session.parentId === null ? "root" : "child";
    return `${name} ${oneLine(session.agent, 60)}, you, ${place}, ${duration(now - session.createdAt)}`;
  }
  const does = trigger === null ? state(session, now) : asks(trigger, now);
  return `${name} ${oneLine(session.agent, 60)}: ${does}${cost(session)}`;
}

function asks(trigger: Trigger, now: number): string {
  const { defaultAt } = trigger.deadline;
  const fallback =
    trigger.default === null || defaultAt === null
      ? ""
      : ` default "${oneLine(trigger.default, 60)}" in ${duration(defaultAt - now)}`;
  return `ASKS YOU <!-- trigger:${trigger.shortId} -->${fallback}`;
}

function cost({ usage }: Session): string {
  const tokens = usage.inputTokens + usage.outputTokens;
  const words = [
    tokens === 0 ? null : `${tokenWords(tokens)} tokens`,
    !usage.usd ? null : `$${usage.usd.toFixed(2)}`,
  ].filter((word) => word !== null);
  return words.length === 0 ? "" : `, ${words.join(", ")}`;
}

function state(session: Session, now: number): string {
  const ago = (at: number): string => `${duration(now - at)} ago`;
  switch (session.status) {
    case "running":
      return `working, ${oneLine(session.evidence.reason, 120)}, ${ago(session.evidence.at)}`;
    case "waiting":
      return `waiting ${waits[session.waiting?.on ?? ""] ?? ""} for ${duration(now - (session.waiting?.since ?? now))}`;
    case "ended":
      return session.outcome === null ? "ended" : `${session.outcome}, ended ${ago(session.lastActivityAt)}`;
    default:
      return session.outcome === null ? "idle" : `${session.outcome} ${ago(session.lastActivityAt)}`;
  }
}

const waits: Readonly<Record<string, string>> = {
  trigger: "for an answer,",
  children: "for its children,",
  slot: "for a free turn,",
  limit: "for its vendor's usage limit,",
  budget: "for its budget,",
  node: "for its node,",
};
