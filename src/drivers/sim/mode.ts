import { resolve } from "node:path";
import { isInside, realPathOf } from "../../system/folder.ts";
import { fieldsOf } from "../../text/fields.ts";

/** What a sim session may do, as sent by its client. If the client sends no mode, everything is allowed. */
export interface Mode {
  readonly permission: string;
  readonly tools: readonly string[] | null;
  readonly notTools: readonly string[];
}

export function readMode(meta: unknown): Mode {
  const { permission = "full", tools, notTools } = fieldsOf(fieldsOf(meta)["kinfold"]);
  return {
    permission: String(permission),
    tools: Array.isArray(tools) ? tools.map(String) : null,
    notTools: Array.isArray(notTools) ? notTools.map(String) : [],
  };
}

/** Decides what sim does with an action, because sim enforces its modes itself. */
export function verdict(
  mode: Mode,
  action: { readonly tool: "Write" | "Bash"; readonly cwd: string; readonly path?: string },
): "do" | "ask" | "refuse" {
  const isGiven = mode.tools?.includes(action.tool) ?? true;
  if (!isGiven || mode.notTools.includes(action.tool) || mode.permission === "read-only") return "refuse";
  if (mode.permission === "full") return "do";
  if (mode.permission === "ask") return "ask";
  // Resolve links first: a link inside the folder may point out of it.
  const target = realPathOf(resolve(action.cwd, action.path ?? "."));
  return isInside(target, realPathOf(action.cwd)) ? "do" : "ask";
}
