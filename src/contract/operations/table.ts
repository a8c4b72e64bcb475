import type { z } from "zod";
import { ACT } from "./act.ts";
import { DAEMON } from "./daemon.ts";
import { HISTORY } from "./history.ts";
import { READ } from "./read.ts";
import type { OperationSpec } from "./spec.ts";
import { TRIGGER } from "./trigger.ts";
import { allTools, attachedTools, type ListedTool, listed, type ToolRole } from "../tools/tool.ts";

export { Health } from "./daemon.ts";
export type { OperationSpec } from "./spec.ts";

/** All surfaces are generated from this table: HTTP, MCP, CLI, client, OpenAPI and the reference. */
export const OPERATIONS = { ...DAEMON, ...READ, ...ACT, ...TRIGGER, ...HISTORY } as const;

export type OperationName = keyof typeof OPERATIONS;

/** Returns the tool list of a role. It stays byte-identical for the life of a session. */
export function toolsFor(role: ToolRole, options: { aliases: boolean }): ListedTool[] {
  if (role === "attached") return attachedTools(options);
  const all = allTools(options);
  return (role === "full" ? all : all.filter(({ name }) => LEAF_TOOLS.has(name))).map(listed);
}

const ROWS: readonly OperationSpec[] = Object.values(OPERATIONS);
const LEAF_TOOLS = new Set(ROWS.flatMap(({ leaf, mcp }) => (leaf === true ? mcp : [])));

export type InputOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]["input"]>;
export type AskOf<N extends OperationName> = z.input<(typeof OPERATIONS)[N]["input"]>;
export type OutputOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]["output"]>;
