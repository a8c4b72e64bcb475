import { SERVER_NAME, ownToolAfter } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/** The first title is the name (`kinfold_spawn_session`). Files and commands have other kinds. */
export const opencodeOwnTool: OwnTool = ({ title, kind }) =>
  kind === "other" ? ownToolAfter(title, [`${SERVER_NAME}_`]) : null;
