import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { waitWithProgress } from "../terminal/progress.ts";
import { sayEnd } from "../show/round-end.ts";
import { findSession } from "../sessions.ts";

export async function run(call: Call): Promise<number> {
  const { client } = await openConnection(call);
  const session = await findSession(client, call.args[0] ?? "");
  const end = await waitWithProgress(client, call, {
    session,
    timeoutMs: call.flags.number("timeout"),
    until: call.flags.on("turn") ? "turn" : "completion",
  });
  return await sayEnd(client, call, end);
}
