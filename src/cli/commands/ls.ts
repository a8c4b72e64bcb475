import type { Session, SessionStatus } from "../../contract/index.ts";
import { asksOf } from "../answering/asking.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { gridLines } from "../terminal/grid.ts";
import { labelOf, listOpen, listSessions, nameOf } from "../sessions.ts";
import { cleanLine } from "../terminal/text.ts";
import { ageOf, markedWords, stateWords, surroundings } from "../show/words.ts";

export async function run(call: Call): Promise<void> {
  const { client } = await openConnection(call);
  const open = await listOpen(client);
  const sessions = newestFirst(await asked(call, open, (filter) => listSessions(client, filter)));
  if (call.io.json) return call.io.answer({ sessions });
  if (sessions.length === 0) return call.io.line(nothing(call));
  const [parents, asks] = await Promise.all([parentNames(client, sessions), asksOf(client)]);
  call.io.lines(tableOf(sessions, { open, parents, asks }, call));
}

async function parentNames(client: Client, sessions: readonly Session[]): Promise<Map<string, string>> {
  const names = new Map(sessions.map((session) => [session.id, labelOf(session)]));
  const missing = new Set(
    sessions.flatMap(({ parentId }) => (parentId === null || names.has(parentId) ? [] : [parentId])),
  );
  const found = await Promise.all([...missing].map((id) => client.get({ id })));
  for (const { session } of found) names.set(session.id, labelOf(session));
  return names;
}

type List = (filter: { status?: SessionStatus; unseen?: boolean }) => Promise<Session[]>;

async function asked(call: Call, open: readonly Session[], list: List): Promise<readonly Session[]> {
  const status = call.flags.text("status") as SessionStatus | undefined;
  if (call.flags.on("unseen")) {
    const unseen = (await list({ unseen: true })).filter(isFinished);
    return status === undefined ? unseen : unseen.filter((session) => session.status === status);
  }
  if (status !== undefined) return await list({ status });
  if (call.flags.on("all")) return await list({});
  return [...open, ...(await list({ unseen: true })).filter(isFinished)];
}

interface Beside {
  readonly open: readonly Session[];
  readonly parents: ReadonlyMap<string, string>;
  readonly asks: ReadonlyMap<string, string>;
}

function tableOf(sessions: readonly Session[], { open, parents, asks }: Beside, call: Call): string[] {
  const now = Date.now();
  const others = sessions.filter((session) => !open.some((other) => other.id === session.id));
  const around = surroundings([...open, ...others], asks);
  const columns = [
    { title: "NAME" },
    { title: "ID" },
    { title: "AGENT", dropped: 1 },
    { title: "STATE", flexible: true },
    { title: "AGE" },
    { title: "PARENT", dropped: 2 },
  ];
  const rows = sessions.map((session) => {
    const state = stateWords(session, around(session), now);
    const parent = session.parentId === null ? "" : (parents.get(session.parentId) ?? "");
    return [
      { text: nameOf(session), colour: !session.seen && isFinished(session) ? ("bold" as const) : null },
      { text: session.shortId, colour: "soft" as const },
      { text: cleanLine(session.agent) },
      { text: markedWords(state), colour: state.colour },
      { text: ageOf(session, now), colour: "soft" as const },
      { text: parent, colour: "soft" as const },
    ];
  });
  return gridLines(columns, rows, { columns: call.io.columns(), paint: call.io.paint });
}

function nothing(call: Call): string {
  if (call.flags.on("unseen")) return "Nothing new has finished since you looked.";
  if (call.flags.text("status") !== undefined) return `No session is ${call.flags.text("status")}.`;
  if (call.flags.on("all")) return 'No sessions yet. Start one: kinfold spawn "…"   See a demo: kinfold demo';
  return 'Nothing is open. Start something: kinfold spawn "…"   Finished sessions: kinfold ls --all';
}

function isFinished(session: Session): boolean {
  return session.status === "ended" || (session.status === "idle" && session.outcome !== null);
}

/** Also removes duplicates: a session whose status changes between two requests may be in both answers. */
function newestFirst(sessions: readonly Session[]): Session[] {
  const once = new Map(sessions.map((session) => [session.id, session]));
  return [...once.values()].toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
}
