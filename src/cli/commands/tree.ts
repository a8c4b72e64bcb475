import type { Session } from "../../contract/index.ts";
import { asksOf } from "../answering/asking.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { familyLines } from "../show/family.ts";
import { findSession, listOpen } from "../sessions.ts";

export async function run(call: Call): Promise<void> {
  const { client } = await openConnection(call);
  const sessions = await sessionsOf(client, call.args[0]);
  if (call.io.json) return call.io.answer({ sessions });
  if (sessions.length === 0)
    return call.io.line(
      'Nothing is open. Start something: kinfold spawn "…"   Finished sessions: kinfold ls --all',
    );
  const asks = await asksOf(client);
  const drawing = { columns: call.io.columns(), paint: call.io.paint, now: Date.now(), asks };
  call.io.lines(familyLines(sessions, drawing));
}

async function sessionsOf(client: Client, ref: string | undefined): Promise<Session[]> {
  if (ref !== undefined) {
    const { id } = await findSession(client, ref);
    return (await client.tree({ id })).sessions;
  }
  const roots = new Set((await listOpen(client)).map((session) => session.rootId));
  const families = await Promise.all([...roots].map((id) => client.tree({ id })));
  return families.flatMap((family) => family.sessions);
}
