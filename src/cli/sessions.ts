import { Refusal, type Session, type SessionStatus } from "../contract/index.ts";
import type { Client } from "./daemon/connection.ts";
import { Failure } from "./failure.ts";
import { clip, cleanLine } from "./terminal/text.ts";
import { nearest } from "../text/nearest.ts";

/** Finds a session by its id, short id, name or title. If none matches, suggests similar names. */
export async function findSession(client: Client, ref: string): Promise<Session> {
  try {
    return (await client.get({ id: ref })).session;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.code === "not_found") return await byTitle(client, ref);
    if (error.code === "ambiguous_reference") throw await ambiguous(client, ref, error);
    throw error;
  }
}

/** Returns all sessions that match the filter, from all pages. */
export async function listSessions(
  client: Client,
  filter: { status?: SessionStatus; unseen?: boolean } = {},
): Promise<Session[]> {
  const sessions: Session[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list({ ...filter, limit: 500, ...(cursor === undefined ? {} : { cursor }) });
    sessions.push(...page.sessions);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return sessions;
}

/**
 * Returns every session whose round is open: waiting or running. A session whose status changes between the
 * two requests appears once.
 */
export async function listOpen(client: Client): Promise<Session[]> {
  const [waiting, running] = await Promise.all([
    listSessions(client, { status: "waiting" }),
    listSessions(client, { status: "running" }),
  ]);
  return [...new Map([...waiting, ...running].map((session) => [session.id, session])).values()];
}

export function labelOf(session: Pick<Session, "name" | "shortId">): string {
  return session.name === null ? session.shortId : cleanLine(session.name);
}

export function nameOf(session: Pick<Session, "name" | "shortId" | "title">): string {
  if (session.name !== null) return cleanLine(session.name);
  return session.title === null ? session.shortId : `"${clip(cleanLine(session.title), TITLE_MAX)}"`;
}

/** Finds a session by its title, because lists show the title of a session that has no name. */
async function byTitle(client: Client, ref: string): Promise<Session> {
  const { sessions } = await client.list({ limit: 500 });
  const titled = sessions.filter(({ name, title }) => {
    const line = name !== null || title === null ? null : cleanLine(title);
    return line !== null && (line === ref || clip(line, TITLE_MAX) === ref);
  });
  const [only] = titled;
  if (only !== undefined && titled.length === 1) return only;
  if (only === undefined) throw unknownSession(sessions, ref);
  throw new Failure("refused", `"${cleanLine(ref)}" is the title of ${titled.length} sessions. Use an id:`, {
    code: "ambiguous_reference",
    details: { ids: titled.map(({ id }) => id) },
    next: titled.slice(0, 8).map(whoLine),
  });
}

function unknownSession(sessions: readonly Session[], ref: string): Failure {
  const names = sessions.flatMap(({ name, title }) => name ?? title ?? []);
  const ids = sessions.map(({ shortId }) => shortId);
  const close = [...nearest(ref, names), ...nearest(ref, ids, 1)];
  const none = 'There are none yet. Start one: kinfold spawn "…"';
  const next = [sessions.length === 0 ? none : "All sessions: kinfold ls --all"];
  return new Failure("refused", `There is no session "${cleanLine(ref)}".`, {
    code: "not_found",
    details: { close },
    next: close.length === 0 ? next : [`Did you mean: ${close.map(cleanLine).join(", ")}`, ...next],
  });
}

async function ambiguous(client: Client, ref: string, refusal: Refusal): Promise<Failure> {
  const { sessions } = await client.list({ limit: 500 });
  const fits = sessions.filter(
    (session) => session.name === ref || session.shortId.startsWith(ref) || session.id.startsWith(ref),
  );
  return new Failure("refused", refusal.message, {
    code: refusal.code,
    details: refusal.details,
    next: fits.slice(0, 8).map(whoLine),
  });
}

function whoLine(session: Session): string {
  return `${session.shortId}  ${nameOf(session)}  ${session.agent}  in ${cleanLine(session.cwd)}`;
}

const TITLE_MAX = 24;
