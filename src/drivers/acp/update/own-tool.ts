import { ALIAS_WORDS, TOOL_WORDS } from "../../../contract/tools/words.ts";

/** The name under which our own tools are injected. */
export const SERVER_NAME = "kinfold";

/** A tool call as the agent itself announced it, before anything that its model wrote. */
export interface Announced {
  readonly id: string;
  /** The tool's name, where the agent says one. */
  readonly name: string | null;
  /** The first title: later ones may be a file's name or the model's own words. */
  readonly title: string;
  readonly kind: string;
  readonly input: unknown;
  /** The agent marks it as the call of a server's tool. */
  readonly isServerCall: boolean;
}

/**
 * The bare name of our own tool, or null for every other. A call of ours is allowed in every mode, so
 * what a model or a file's name can say must never decide it: not the input, and not a title where
 * there is a name. Each agent spells names in its own way, and each only in that one.
 */
export type OwnTool = (call: Announced) => string | null;

/** Any other agent: its name, and where it says none the first title of what is no file and no command. */
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

/** The name of our own tool behind one of these prefixes, or null. */
export function ownToolAfter(name: string | null, prefixes: readonly string[]): string | null {
  const prefix = prefixes.find((each) => name?.startsWith(each) === true);
  return prefix === undefined || name === null ? null : knownOwnTool(name.slice(prefix.length));
}

export function knownOwnTool(tool: string): string | null {
  return OURS.has(tool) ? tool : null;
}
