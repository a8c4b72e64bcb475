import { SERVER_NAME, knownOwnTool } from "../../acp/update/own-tool.ts";
import type { OwnTool } from "../../acp/update/own-tool.ts";

/** Codex: server and tool in the input of what its adapter marks as a server's call; no other input is read. */
export const codexOwnTool: OwnTool = ({ input, isServerCall }) => {
  if (!isServerCall || typeof input !== "object" || input === null) return null;
  const { server, tool } = input as { server?: unknown; tool?: unknown };
  return server === SERVER_NAME && typeof tool === "string" ? knownOwnTool(tool) : null;
};
