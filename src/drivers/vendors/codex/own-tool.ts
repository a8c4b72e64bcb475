import { SERVER_NAME, knownOwnTool } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/** Reads the input only of calls that the adapter marks as MCP calls: there the adapter wrote it. */
export const codexOwnTool: OwnTool = ({ input, isServerCall }) => {
  if (!isServerCall || typeof input !== "object" || input === null) return null;
  const { server, tool } = input as { server?: unknown; tool?: unknown };
  return server === SERVER_NAME && typeof tool === "string" ? knownOwnTool(tool) : null;
};
