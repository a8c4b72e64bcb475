import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { waitWithProgress } from "../terminal/progress.ts";
import { promptOf } from "../terminal/prompt.ts";
import { sayEnd } from "../show/round-end.ts";
import { spawnAsAsked, spawnLine } from "../spawning.ts";

export async function run(call: Call): Promise<number> {
  const prompt = await promptOf(call, call.args, 'kinfold run "Review src/auth for bugs"');
  const { client } = await openConnection(call, { start: true });
  const spawned = await spawnAsAsked(client, call, prompt);
  if (process.stderr.isTTY && !call.io.json) call.io.note(spawnLine(spawned));
  const end = await waitWithProgress(client, call, {
    session: spawned.session,
    timeoutMs: call.flags.number("timeout"),
    until: "completion",
  });
  return await sayEnd(client, call, end);
}
