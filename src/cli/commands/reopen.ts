import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { findSession, labelOf } from "../sessions.ts";

export async function run(call: Call): Promise<number> {
  const { client } = await openConnection(call);
  const found = await findSession(client, call.args[0] ?? "");
  const done = await client.reopen({ id: found.id });
  if (call.io.json) {
    call.io.answer(done);
    return 0;
  }
  const label = labelOf(done.session);
  if (found.status !== "ended") {
    call.io.line(`${label} is already open.`);
    return 0;
  }
  const good = call.io.paint("green", "✓");
  call.io.line(
    `${good} ${label} accepts messages again. Messages that it had not read stay void; its descendants stay ended.`,
  );
  call.io.line(`  next: kinfold tell '${label}' "…"`);
  return 0;
}
