import type { SearchOutput } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { openConnection } from "../connection.ts";
import { findSession } from "../sessions.ts";
import { ago, clip, oneLine } from "../text.ts";

export async function run(call: Call): Promise<void> {
  const query = call.args.join(" ");
  const { client } = await openConnection(call);
  const where = call.flags.text("in") ?? "all";
  const id = where === "all" ? "all" : (await findSession(client, where)).id;
  const cursor = call.flags.text("cursor");
  const limit = call.flags.number("limit");
  const found = await client.search({
    query,
    id,
    ...(cursor === undefined ? {} : { cursor }),
    ...(limit === undefined ? {} : { limit }),
  });
  if (call.io.json) {
    call.io.answer(found);
    return;
  }
  if (found.hits.length === 0) {
    call.io.line(`Nothing has all of these words: ${oneLine(query)}`);
    return;
  }
  for (const hit of found.hits) for (const line of hitLines(hit, call)) call.io.line(line);
  if (found.cursor !== null)
    call.io.note(call.io.paint("soft", `There is more: the same with --cursor ${found.cursor}`));
}

function hitLines(hit: SearchOutput["hits"][number], call: Call): string[] {
  const { paint, columns } = call.io;
  const name = hit.name === null ? hit.shortId : `${oneLine(hit.name)}  ${hit.shortId}`;
  const what = `${WHO[hit.author] ?? hit.author}, ${ago(Date.now() - hit.at)}, entry ${hit.index}`;
  return [`${paint("bold", name)}  ${paint("soft", what)}`, `  ${clip(oneLine(hit.snippet), columns() - 2)}`];
}

const WHO: Readonly<Record<string, string>> = { person: "you", daemon: "kinfold" };
