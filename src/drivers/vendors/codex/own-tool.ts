import { SERVER_NAME, knownOwnTool } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/**
 * Codex puts server and tool into the input of calls that its adapter marks as MCP calls; the input of other
 * calls is not read.
 */
export const codexOwnTool: OwnTool = ({ input, isServerCall }) => {
  if (!isServerCall || typeof input !== "object" || input === null) return null;
  const { server, tool } = input as { server?: unknown; tool?: unknown };
  return server === SERVER_NAME && typeof tool === "string" ? knownOwnTool(tool) : null;
};
