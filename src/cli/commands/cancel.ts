import type { CancelOutput, Session } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { cancelled } from "../failure.ts";
import { confirm } from "../terminal/prompt.ts";
import { findSession, labelOf } from "../sessions.ts";
import { cleanLine } from "../terminal/text.ts";
import { isOpen } from "../show/words.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<number> {
  const { client } = await openConnection(call);
  const session = await findSession(client, call.args[0] ?? "");
  const turnOnly = call.flags.on("turn");
  if (!turnOnly && !(await isMeant(client, call, session))) {
    throw cancelled("not_confirmed", "Nothing was stopped.");
  }
  const reason = call.flags.text("reason");
  const done = await client.cancel({ id: session.id, turnOnly, ...(reason === undefined ? {} : { reason }) });
  if (call.io.json) call.io.answer(done);
  else call.io.lines(report(session, done, call));
  return done.left.length > 0 || done.stopping.length > 0 ? 1 : 0;
}

async function isMeant(client: Client, call: Call, session: Session): Promise<boolean> {
  if (call.flags.on("yes") || call.io.json || call.io.stdin.isTTY !== true || !call.io.tty) return true;
  const { sessions } = await client.tree({ id: session.id });
  const ends = [session, ...below(session.id, sessions)].filter((each) => each.status !== "ended");
  const working = ends.filter(isOpen).length;
  const closed = ends.length - working;
  if (ends.length === 0 || (ends.length === 1 && closed === 0)) return true;
  return confirm(call, `${consequence(working, closed)} Continue?`);
}

function consequence(working: number, closed: number): string {
  const stops = working === 0 ? "Nothing is at work." : `Stops ${count(working, "session")} at work.`;
  if (closed === 0) return stops;
  return `${stops} Closes ${count(closed, "finished session")}. Closed sessions accept no messages until you reopen them.`;
}

function below(id: string, sessions: readonly Session[]): Session[] {
  const children = sessions.filter((session) => session.parentId === id && session.detachedAt === null);
  return children.flatMap((child) => [child, ...below(child.id, sessions)]);
}

function report(session: Session, done: CancelOutput, call: Call): string[] {
  const label = labelOf(session);
  const remains = done.left.map(
    ({ what, pid }) => `  ${cleanLine(what)}${pid === null ? "" : ` (pid ${pid})`}`,
  );
  const stopping = count(done.stopping.length, "session");
  if (done.stopping.length > 0)
    remains.push(`  ${stopping} still stopping; check again: kinfold tree '${label}'`);
  const mark = remains.length === 0 ? call.io.tick : call.io.paint("red", "✗");
  if (call.flags.on("turn")) {
    const what = done.cancelled ? `the running turn of ${label} was stopped` : `${label} had no running turn`;
    return [`${mark} ${what}`, ...remains];
  }
  if (done.stopped + done.closed === 0 && remains.length === 0)
    return [`${label} had already ended; nothing to stop.`];
  const left = `${count(done.left.length, "process", "processes")} left`;
  const stopped = done.stopped === 0 ? "nothing was at work" : `${count(done.stopped, "session")} stopped`;
  return [`${mark} ${stopped}, ${left}`, ...closedLines(label, done), ...remains];
}

function closedLines(label: string, { closed }: CancelOutput): string[] {
  if (closed === 0) return [];
  const what = `${count(closed, "finished session")} closed`;
  return [`  ${what}. To let a closed session accept messages again: kinfold reopen '${label}'`];
}
