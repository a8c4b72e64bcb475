import { SERVER_NAME, ownToolAfter } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/** Claude Code: `mcp__kinfold__spawn_session`, beside the call and never in its title. */
export const claudeOwnTool: OwnTool = ({ name }) => ownToolAfter(name, [`mcp__${SERVER_NAME}__`]);
