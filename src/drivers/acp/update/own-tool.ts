import { ALIAS_WORDS, TOOL_WORDS } from "../../../contract/tools/words.ts";

/** The name of the MCP server that offers our tools. */
export const SERVER_NAME = "kinfold";

/** A tool call as the agent announced it. */
interface Announced {
  readonly id: string;
  readonly name: string | null;
  /** The call's first title. Later titles may be a file's name or text from the model. */
  readonly title: string;
  readonly kind: string;
  readonly input: unknown;
  /** The agent marks this as a call to an MCP server. */
  readonly isServerCall: boolean;
}

/**
 * Returns the tool's bare name if the call is to one of our tools, else null. Our tools are allowed in every
 * mode. So the check must never use text that a model or a file name can choose: the call's input, or the
 * title of a call that has a name. A vendor's rule accepts only that vendor's spelling of tool names.
 */
export type OwnTool = (call: Announced) => string | null;

/** The default rule: uses the tool's name or, for an unnamed call of kind `other`, its first title. */
export const plainOwnTool: OwnTool = ({ name, title, kind }) => {
  if (name !== null) return ownToolAfter(name, PLAIN);
  return kind === "other" ? ownToolAfter(title, PLAIN) : null;
};

const PLAIN = [
  `mcp__${SERVER_NAME}__`,
  `mcp.${SERVER_NAME}.`,
  `mcp_${SERVER_NAME}_`,
  `${SERVER_NAME}__`,
  `${SERVER_NAME}_`,
];

const OURS: ReadonlySet<string> = new Set([...TOOL_WORDS, ALIAS_WORDS].map(({ name }) => name));

/** Returns our tool's name after one of these prefixes, or null. */
export function ownToolAfter(name: string | null, prefixes: readonly string[]): string | null {
  const prefix = prefixes.find((each) => name?.startsWith(each) === true);
  return prefix === undefined || name === null ? null : knownOwnTool(name.slice(prefix.length));
}

export function knownOwnTool(tool: string): string | null {
  return OURS.has(tool) ? tool : null;
}
