import { SERVER_NAME, ownToolAfter } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/** Claude Code sends the name (`mcp__kinfold__spawn_session`) in its own field, never in the title. */
export const claudeOwnTool: OwnTool = ({ name }) => ownToolAfter(name, [`mcp__${SERVER_NAME}__`]);
