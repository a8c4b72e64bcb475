import { bad, type Check, good, optional } from "./check.ts";
import type { Connection } from "../daemon/connection.ts";
import { cleanLine } from "../terminal/text.ts";
import { count } from "../../text/quantity.ts";

const PROBLEMS_MAX = 200;

/** Checks the import of history from disk, and reports each file that could not be read. */
export async function checkHistory(connection: Connection | null): Promise<Check[]> {
  if (connection === null) return [];
  const { scan, problems, onDisk } = await connection.client.imported({
    problems: PROBLEMS_MAX,
    count: true,
  });
  const name = "history";
  if (!scan.enabled) {
    const earlier = onDisk ?? [];
    const number = earlier.reduce((sum, { sessions }) => sum + sessions, 0);
    const whose = earlier.map(({ agent }) => cleanLine(agent)).join(", ");
    const text =
      number === 0
        ? "no sessions of agents on this disk"
        : `${count(number, "earlier session")} of ${whose} on this disk, not imported`;
    return [optional(name, text, "import them: kinfold import")];
  }
  const isFailed = scan.phase === "failed" || scan.error !== null;
  const sessions = scan.found.reduce((sum, each) => sum + each.sessions + each.subagents, 0);
  const read = `${count(sessions, "session")}, ${scan.filesRead} of ${count(scan.files, "file")} read`;
  return [
    isFailed
      ? bad(name, `reading stopped: ${cleanLine(scan.error ?? "")}`, "its log: kinfold logs")
      : good(name, read),
    ...problems.map(({ path, reason, badLines }) => {
      const kind = badLines > 0 ? "partly read file" : "unread file";
      return optional(kind, `${cleanLine(path)}: ${cleanLine(reason)}`, null);
    }),
  ];
}
