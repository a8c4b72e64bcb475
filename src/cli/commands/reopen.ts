import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { findSession, labelOf } from "../sessions.ts";

export async function run(call: Call): Promise<void> {
  const { client } = await openConnection(call);
  const found = await findSession(client, call.args[0] ?? "");
  const done = await client.reopen({ id: found.id });
  const label = labelOf(done.session);
  if (found.status !== "ended") return call.io.answer(done, `${label} is already open.`);
  const text = `${label} accepts messages again. Messages that it had not read stay void; its descendants stay ended.`;
  call.io.answer(done, `${call.io.tick} ${text}\n  next: kinfold tell '${label}' "…"`);
}
