import type { CancelOutput, Session } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../connection.ts";
import { Failure } from "../failure.ts";
import { confirm } from "../prompt.ts";
import { findSession, labelOf } from "../sessions.ts";
import { count, oneLine } from "../text.ts";

export async function run(call: Call): Promise<number> {
  const { client } = await openConnection(call);
  const session = await findSession(client, call.args[0] ?? "");
  const turnOnly = call.flags.on("turn");
  if (!turnOnly && !(await isMeant(client, call, session))) {
    throw new Failure("cancelled", "Nothing was stopped.", { code: "not_confirmed" });
  }
  const reason = call.flags.text("reason");
  const done = await client.cancel({ id: session.id, turnOnly, ...(reason === undefined ? {} : { reason }) });
  if (call.io.json) call.io.answer(done);
  else for (const line of report(session, done, call)) call.io.line(line);
  return done.left.length > 0 || done.stopping.length > 0 ? 1 : 0;
}

async function isMeant(client: Client, call: Call, session: Session): Promise<boolean> {
  if (call.flags.on("yes") || call.io.json || call.io.stdin.isTTY !== true || !call.io.tty) return true;
  const { sessions } = await client.tree({ id: session.id });
  const below = countBelow(session.id, sessions);
  return below === 0 || (await confirm(call, `Stop ${labelOf(session)} and the ${below} below it?`));
}

function countBelow(id: string, sessions: readonly Session[]): number {
  const children = sessions.filter((session) => session.parentId === id && session.detachedAt === null);
  return children.reduce(
    (sum, child) => sum + (child.status === "ended" ? 0 : 1) + countBelow(child.id, sessions),
    0,
  );
}

function report(session: Session, done: CancelOutput, call: Call): string[] {
  const label = labelOf(session);
  const good = call.io.paint("green", "✓");
  const bad = call.io.paint("red", "✗");
  const remains = done.left.map(
    (left) => `  ${oneLine(left.what)}${left.pid === null ? "" : ` (pid ${left.pid})`}`,
  );
  if (done.stopping.length > 0)
    remains.push(
      `  ${count(done.stopping.length, "session")} still stopping; look again: kinfold tree '${label}'`,
    );
  const mark = remains.length === 0 ? good : bad;
  if (call.flags.on("turn"))
    return [
      `${mark} ${done.cancelled ? `the running turn of ${label} was stopped` : `${label} had no running turn`}`,
      ...remains,
    ];
  if (done.stopped === 0 && remains.length === 0) return [`${label} had ended already: nothing to stop.`];
  const left = `${count(done.left.length, "process", "processes")} left`;
  if (!done.cancelled && done.stopped === 1)
    return [`${mark} ${label} was not at work; it takes no more messages. ${left}`, ...remains];
  return [`${mark} ${count(done.stopped, "session")} stopped, ${left}`, ...remains];
}
