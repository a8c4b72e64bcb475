import type { Entry, Session } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import type { Client } from "../daemon/connection.ts";
import { type Failure, refused } from "../failure.ts";
import { labelOf } from "../sessions.ts";
import { clock, harmless, cleanLine } from "../terminal/text.ts";
import { entryLines } from "./transcript.ts";

/** How many entries to show before and after the requested one. */
const AROUND = 3;

/** Shows one entry in full, and its neighbours in short. */
export async function showEntry(
  call: Call,
  { client, session, index }: { client: Client; session: Session; index: number },
): Promise<void> {
  const { id } = session;
  const page = await client.entries({
    id,
    after: Math.max(-1, index - AROUND - 1),
    before: index + AROUND + 1,
    limit: 20,
  });
  const entry = page.entries.find((each) => each.index === index);
  if (entry === undefined) throw unknownEntry(session, page.total, index);
  const { io } = call;
  if (io.json) return io.answer({ session, entry, around: page.entries });
  const look = { columns: io.columns(), paint: io.paint };
  const before = page.entries.filter((each) => each.index < index);
  const after = page.entries.filter((each) => each.index > index);
  io.line(
    `${io.paint("bold", labelOf(session))}  ${io.paint("soft", `${session.shortId}, entry ${index} of ${page.total}`)}`,
  );
  io.line();
  const around = (entries: readonly Entry[]): string[] =>
    entries.flatMap((each) => short(entryLines([each], look)));
  io.lines([...around(before), ...wholeLines(entry, call), ...around(after)]);
}

function short(lines: readonly string[]): string[] {
  return lines.length <= LINES_MAX ? [...lines] : [...lines.slice(0, LINES_MAX - 1), "  …"];
}

/** How many lines of a neighbouring entry to show at most. */
const LINES_MAX = 4;

function wholeLines(entry: Entry, { io }: Call): string[] {
  const { body } = entry;
  const tool = body.tool === undefined ? "" : ` ${cleanLine(body.tool)}`;
  const head = `${clock(entry.at)}  #${entry.index}  ${entry.author} ${KINDS[entry.kind] ?? entry.kind}${tool}`;
  const asked = [body.command, ...(body.paths ?? [])].filter(
    (part) => part !== undefined && !body.text.includes(part),
  );
  const text = [...asked, body.text].join("\n");
  return [
    "",
    io.paint("amber", head),
    ...harmless(text)
      .trimEnd()
      .split("\n")
      .map((line) => `  ${line}`),
    "",
  ];
}

const KINDS: Readonly<Record<string, string>> = { toolCall: "called", toolResult: "answered", text: "said" };

function unknownEntry(session: Session, total: number, index: number): Failure {
  const there = total === 0 ? "It has none yet." : `Its entries are 0 to ${total - 1}.`;
  return refused("not_found", `${labelOf(session)} has no entry ${index}. ${there}`, [
    `All entries: kinfold show ${session.shortId} --transcript`,
  ]);
}
