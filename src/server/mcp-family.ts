import type { Session } from "../contract/index.ts";
import { duration, oneLine } from "./mcp-words.ts";

/** The family as a drawn tree, one line per session: what a parent needs after it forgot everything. */
export function familyLines(sessions: readonly Session[], you: string, now: number): string[] {
  const ids = new Set(sessions.map((session) => session.id));
  const below = Map.groupBy(sessions, (session) =>
    session.parentId !== null && ids.has(session.parentId) ? session.parentId : null,
  );
  const lines: string[] = [];
  const draw = (parentId: string | null, indent: string): void => {
    const children = below.get(parentId) ?? [];
    for (const [index, session] of children.entries()) {
      const isLast = index === children.length - 1;
      const branch = parentId === null ? "" : indent + (isLast ? "└ " : "├ ");
      lines.push(branch + line(session, you, now));
      draw(session.id, parentId === null ? "" : indent + (isLast ? "  " : "│ "));
    }
  };
  draw(null, "");
  return lines;
}

function line(session: Session, you: string, now: number): string {
  const name = session.name === null ? session.shortId : `"${session.name}" ${session.shortId}`;
  if (session.id === you) {
    const place = session.parentId === null ? "root" : "child";
    return `${name} ${session.agent}, you, ${place}, ${duration(now - session.createdAt)}`;
  }
  return `${name} ${session.agent}: ${state(session, now)}`;
}

function state(session: Session, now: number): string {
  const ago = (at: number): string => `${duration(now - at)} ago`;
  switch (session.status) {
    case "running":
      return `working, ${oneLine(session.evidence.reason, 120)}, ${ago(session.evidence.at)}`;
    case "waiting":
      return `waiting ${waits[session.waiting?.on ?? ""] ?? ""} for ${duration(now - (session.waiting?.since ?? now))}`;
    case "ended":
      return session.outcome === null ? "ended" : `${session.outcome}, ended ${ago(session.endedAt ?? now)}`;
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
