import { oneLine } from "../../text/fence.ts";
import type { SessionRecord } from "../../store/port/store.ts";

/** Makes the prompt that continues a turn after the daemon died, because no agent continues by itself. */
export function resumePrompt(cut: {
  cutAt: number;
  now: number;
  children: readonly SessionRecord[];
  /** Rendered messages that had not reached the agent. */
  missing: string;
}): string {
  const lines = [
    "[Kinfold] Your turn was cut: the daemon or the computer stopped and has started again. Continue it from where it stopped.",
    "Calls marked interrupted or aborted may have taken effect: check them before you repeat them.",
  ];
  const names = cut.children.map(
    (child) => `"${oneLine(child.name ?? child.shortId, 40)}" (${child.shortId})`,
  );
  if (names.length > 0) lines.push(`Children already started: ${names.join(", ")}. Do not spawn them again.`);
  if (cut.missing !== "") lines.push("These messages had not reached you:", "", cut.missing);
  return lines.join("\n");
}
