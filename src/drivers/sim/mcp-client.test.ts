import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { McpClient } from "./mcp-client.ts";

type Respond = (message: { id: number; method: string; params: never }, response: ServerResponse) => void;

interface Seen {
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
}

async function serve(t: TestContext, respond: Respond): Promise<{ client: McpClient; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const message = JSON.parse(Buffer.concat(chunks).toString());
    seen.push({ method: message.method, headers: request.headers });
    if (message.method === "notifications/initialized") return response.writeHead(202).end();
    if (message.method !== "initialize") return respond(message, response);
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "m-1" });
    const result = {
      protocolVersion: "2025-03-26",
      capabilities: {},
      serverInfo: { name: "s", version: "1" },
    };
    return response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const headers = [{ name: "Authorization", value: "Bearer t" }];
  return { client: new McpClient({ name: "kinfold", url, headers }), seen };
}

const never = new AbortController().signal;

describe("sim's own MCP client", () => {
  it("initializes once, and every call carries token, session and version", async (t) => {
    const { client, seen } = await serve(t, (message, response) => {
      const result = { content: [{ type: "text", text: "fine" }] };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
    });
    assert.deepEqual(await client.call("x", { a: 1 }, never), { text: "fine", ok: true });
    await client.call("x", {}, never);
    const methods = seen.map((one) => one.method);
    assert.deepEqual(methods, ["initialize", "notifications/initialized", "tools/call", "tools/call"]);
    assert.ok(seen.every((one) => one.headers.authorization === "Bearer t"));
    const last = seen.at(-1)?.headers;
    assert.deepEqual([last?.["mcp-session-id"], last?.["mcp-protocol-version"]], ["m-1", "2025-03-26"]);
  });

  it("finds its answer in a stream of events, past progress and comments", async (t) => {
    const { client } = await serve(t, (message, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(
        ': hello\n\nevent: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n',
      );
      const result = {
        content: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ],
      };
      const answer = `data: ${JSON.stringify({ jsonrpc: "2.0", id: message.id, result })}\r\n\r\n`;
      response.write(answer.slice(0, 20));
      response.end(answer.slice(20));
    });
    assert.deepEqual(await client.call("x", {}, never), { text: "one\ntwo", ok: true });
  });

  it("reports a tool's failure, a protocol error and an HTTP refusal as failed calls", async (t) => {
    const replies = [
      [200, { result: { isError: true, content: [{ type: "text", text: "limit reached" }] } }],
      [200, { error: { code: -32602, message: "unknown tool" } }],
      [401, { error: "no" }],
    ] as const;
    let at = 0;
    const { client } = await serve(t, (message, response) => {
      const [status, body] = replies[at++] as (typeof replies)[number];
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...body }));
    });
    assert.deepEqual(await client.call("x", {}, never), { text: "limit reached", ok: false });
    assert.deepEqual(await client.call("x", {}, never), { text: "tool x failed: unknown tool", ok: false });
    assert.match((await client.call("x", {}, never)).text, /^tool x failed: 401 /);
  });

  it("abandons a call when its turn is cancelled", async (t) => {
    const abort = new AbortController();
    const { client } = await serve(t, () => abort.abort());
    await assert.rejects(client.call("x", {}, abort.signal));
  });
});
