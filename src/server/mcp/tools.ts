import { ALIAS_WORDS, TOOL_WORDS } from "../../contract/index.ts";
import type { OPERATIONS, OperationName, ToolWords } from "../../contract/index.ts";

export type ToolOperation = {
  [N in OperationName]: (typeof OPERATIONS)[N] extends { readonly mcp: string } ? N : never;
}[OperationName];

const WORDS: readonly (ToolWords & { readonly operation: ToolOperation })[] = TOOL_WORDS;
const OPERATION_OF: ReadonlyMap<string, ToolOperation> = new Map(
  [...WORDS, ALIAS_WORDS].map(({ name, operation }) => [name, operation]),
);
const PARAMETERS_OF: ReadonlyMap<ToolOperation, ReadonlyMap<string, string>> = new Map(
  WORDS.map((words) => [words.operation, parameters(words)]),
);

export const TOOL_NAMES: readonly string[] = WORDS.map(({ name }) => name);

export function operationOf(toolName: string): ToolOperation | null {
  return OPERATION_OF.get(toolName) ?? null;
}

/** The source design's name for a spawn, whose child inherits nothing. */
export function isAlias(toolName: string): boolean {
  return toolName === ALIAS_WORDS.name;
}

/** What the tool calls each field of its operation. */
export function parametersOf(operation: ToolOperation): ReadonlyMap<string, string> {
  return PARAMETERS_OF.get(operation) ?? new Map();
}

function parameters(words: ToolWords): ReadonlyMap<string, string> {
  return new Map(Object.keys(words.parameters).map((name) => [name, words.fields?.[name] ?? name]));
}
