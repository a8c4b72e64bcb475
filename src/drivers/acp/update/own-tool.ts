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

/** Claude Code: `mcp__kinfold__spawn_session`, beside the call and never in its title. */
export const claudeOwnTool: OwnTool = ({ name }) => after(name, [`mcp__${SERVER_NAME}__`]);

/** Codex: server and tool in the input of what its adapter marks as a server's call; no other input is read. */
export const codexOwnTool: OwnTool = ({ input, isServerCall }) => {
  if (!isServerCall || typeof input !== "object" || input === null) return null;
  const { server, tool } = input as { server?: unknown; tool?: unknown };
  return server === SERVER_NAME && typeof tool === "string" ? known(tool) : null;
};

/**
 * Gemini: the name leads the call's id (`mcp_kinfold_spawn_session__…`). One underscore could also
 * belong to another server's name; the title says which server it is.
 */
export const geminiOwnTool: OwnTool = ({ id, title }) => {
  const [name] = id.split(/__|-/, 1);
  const tool = after(name ?? null, [`mcp_${SERVER_NAME}_`]);
  return tool !== null && title === `${tool} (${SERVER_NAME} MCP Server)` ? tool : null;
};

/** OpenCode: the first title is the name (`kinfold_spawn_session`); files and commands have another kind. */
export const opencodeOwnTool: OwnTool = ({ title, kind }) =>
  kind === "other" ? after(title, [`${SERVER_NAME}_`]) : null;

/** Any other agent: its name, and where it says none the first title of what is no file and no command. */
export const plainOwnTool: OwnTool = ({ name, title, kind }) => {
  if (name !== null) return after(name, PLAIN);
  return kind === "other" ? after(title, PLAIN) : null;
};

const PLAIN = [
  `mcp__${SERVER_NAME}__`,
  `mcp.${SERVER_NAME}.`,
  `mcp_${SERVER_NAME}_`,
  `${SERVER_NAME}__`,
  `${SERVER_NAME}_`,
];

const OURS: ReadonlySet<string> = new Set([...TOOL_WORDS, ALIAS_WORDS].map(({ name }) => name));

function after(name: string | null, prefixes: readonly string[]): string | null {
  const prefix = prefixes.find((each) => name?.startsWith(each) === true);
  return prefix === undefined || name === null ? null : known(name.slice(prefix.length));
}

function known(tool: string): string | null {
  return OURS.has(tool) ? tool : null;
}
