import { SERVER_NAME, ownToolAfter } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/**
 * In OpenCode the first title is the name (`kinfold_spawn_session`); files and commands have another kind.
 */
export const opencodeOwnTool: OwnTool = ({ title, kind }) =>
  kind === "other" ? ownToolAfter(title, [`${SERVER_NAME}_`]) : null;
