import type { Call } from "./call.ts";
import type { Check } from "./commands/doctor.ts";
import type { Connection } from "./connection.ts";
import { count, oneLine } from "./text.ts";

const PROBLEMS_MAX = 200;

/** What agents left on disk: whether it is read, and every file that could not be, with the reason. */
export async function checkHistory(_call: Call, connection: Connection | null): Promise<Check[]> {
  if (connection === null) return [];
  const { scan, problems } = await connection.client.imported({ problems: PROBLEMS_MAX });
  const name = "history";
  if (!scan.enabled) {
    const text = "what agents left on disk is not read";
    return [{ name, ok: false, optional: true, text, advice: "read it: kinfold import" }];
  }
  const failed = scan.phase === "failed" || scan.error !== null;
  const sessions = scan.found.reduce((sum, each) => sum + each.sessions + each.subagents, 0);
  const read = `${count(sessions, "session")}, ${scan.filesRead} of ${count(scan.files, "file")} read`;
  return [
    {
      name,
      ok: !failed,
      text: failed ? `reading stopped: ${oneLine(scan.error ?? "")}` : read,
      advice: failed ? "its log: kinfold logs" : null,
    },
    ...problems.map(({ path, reason, badLines }) => ({
      name: badLines > 0 ? "a file in part" : "a file",
      ok: false,
      optional: true,
      text: `${oneLine(path)}: ${oneLine(reason)}`,
      advice: null,
    })),
  ];
}
