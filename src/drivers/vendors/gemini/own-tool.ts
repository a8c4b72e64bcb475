import { SERVER_NAME, ownToolAfter } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/**
 * Gemini: the name leads the call's id (`mcp_kinfold_spawn_session__…`). One underscore could also
 * belong to another server's name; the title says which server it is.
 */
export const geminiOwnTool: OwnTool = ({ id, title }) => {
  const [name] = id.split(/__|-/, 1);
  const tool = ownToolAfter(name ?? null, [`mcp_${SERVER_NAME}_`]);
  return tool !== null && title === `${tool} (${SERVER_NAME} MCP Server)` ? tool : null;
};
