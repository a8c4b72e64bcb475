import { SERVER_NAME, ownToolAfter } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/**
 * Gemini puts the name first in the call's id (`mcp_kinfold_spawn_session__…`). A server's name may contain
 * underscores too, so the title must confirm the server.
 */
export const geminiOwnTool: OwnTool = ({ id, title }) => {
  const [name] = id.split(/__|-/, 1);
  const tool = ownToolAfter(name ?? null, [`mcp_${SERVER_NAME}_`]);
  return tool !== null && title === `${tool} (${SERVER_NAME} MCP Server)` ? tool : null;
};
