import { instructionsFor, type ListedTool } from "../../contract/tools/tool.ts";
import { answer, errorAnswer, type McpMessage, versionIn } from "./message.ts";

/** The protocol versions that begin with `initialize`, newest first. `MODERN` has no `initialize`. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];
const MODERN = "2026-07-28";
const CAPABILITIES = { tools: {}, prompts: {} };

export interface ServerInfo {
  readonly version: string;
  readonly tools: () => Promise<readonly ListedTool[]>;
}

/**
 * Answers a client's first requests without the daemon, because a client that has to wait long goes on
 * without tools. Returns null if the daemon must answer.
 */
export async function initializeAnswer(message: McpMessage, info: ServerInfo): Promise<object | null> {
  const claimed = versionIn(message);
  if (claimed !== null && claimed !== MODERN) return null;
  const isModern = claimed === MODERN;
  const serverInfo = { name: "kinfold", title: "Kinfold", version: info.version };
  const complete = {
    resultType: "complete",
    ttlMs: 0,
    cacheScope: "private",
    _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
  };
  const instructions = instructionsFor("attached");
  switch (message.method) {
    case "initialize":
      if (isModern) return null;
      return answer(message.id, {
        protocolVersion: negotiated(message.params["protocolVersion"]),
        capabilities: CAPABILITIES,
        serverInfo,
        instructions,
      });
    case "server/discover":
      if (!isModern) return errorAnswer(message.id, -32_601, "Method not found");
      return answer(message.id, {
        supportedVersions: [MODERN],
        capabilities: CAPABILITIES,
        instructions,
        ...complete,
      });
    case "tools/list":
      return answer(message.id, { tools: await info.tools(), ...(isModern && complete) });
    case "ping":
      return isModern ? null : answer(message.id, {});
    default:
      return null;
  }
}

export function negotiated(asked: unknown): string {
  return VERSIONS.find((version) => version === asked) ?? VERSIONS[0] ?? "";
}
