import { quoted } from "../answering/asking.ts";
import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { promptOf } from "../terminal/prompt.ts";
import { labelOf } from "../sessions.ts";
import { spawnAsAsked, spawnLine } from "../spawning.ts";

export async function run(call: Call): Promise<void> {
  const prompt = await promptOf(call, call.args, 'kinfold spawn --name review "Review src/auth for bugs"');
  const { client } = await openConnection(call, { start: true });
  const spawned = await spawnAsAsked(client, call, prompt);
  if (call.io.json) return call.io.answer(spawned);
  call.io.line(spawnLine(spawned));
  if (call.io.tty)
    call.io.note(call.io.paint("soft", `kinfold watch · kinfold wait ${quoted(labelOf(spawned.session))}`));
}
