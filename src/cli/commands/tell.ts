import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { promptOf } from "../terminal/prompt.ts";
import { findSession, labelOf } from "../sessions.ts";
import { cleanLine } from "../terminal/text.ts";

export async function run(call: Call): Promise<void> {
  const [ref = "", ...words] = call.args;
  const message = await promptOf(call, words, `kinfold tell ${ref} "Use the small dataset"`);
  const { client } = await openConnection(call);
  const session = await findSession(client, ref);
  const key = call.flags.text("key");
  const told = await client.tell({
    id: session.id,
    message,
    deliverAs: call.flags.on("followUp") ? "followUp" : "steer",
    restart: call.flags.on("restart"),
    ...(key === undefined ? {} : { key }),
  });
  const what = told.existing ? `${labelOf(session)} already has this message.` : cleanLine(told.why);
  call.io.answer(told, `${call.io.tick} ${what}`);
}
