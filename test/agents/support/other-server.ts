// A person's MCP server with one tool, over stdio, to test which agents may use it.
import { createInterface } from "node:readline";

const name = process.argv[2] ?? "other";
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line) as {
    id?: number | string;
    method: string;
    params?: { protocolVersion?: string };
  };
  if (id === undefined) return;
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: params?.protocolVersion ?? "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name, version: "1" },
    },
    "tools/list": {
      tools: [{ name: `${name}_lookup`, description: "Looks up", inputSchema: { type: "object" } }],
    },
  };
  const result = results[method];
  const answer = result === undefined ? { error: { code: -32601, message: "unknown" } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
});
