import { existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Client as McpClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { AskOf, Session } from "../../src/contract/index.ts";
import type { Client, TestHome } from "./daemon.ts";
import { eventually } from "./daemon.ts";

const AGENT = fileURLToPath(new URL("./spy-agent.ts", import.meta.url));

/** The kinfold.yaml that defines the agent `spy`. */
export const SPY_YAML = JSON.stringify({ agents: { spy: { command: [process.execPath, AGENT] } } });

/** A reply of one of our tools: its parsed first line, and the whole text. */
export interface ToolReply {
  readonly head: Record<string, unknown>;
  readonly text: string;
  readonly isError: boolean;
}

/** A session whose token the test has, so that the test can call our tools as that session. */
export class Spy {
  readonly session: Session;
  readonly folder: string;
  readonly url: string;
  readonly token: string;
  #mcp: McpClient | null = null;

  constructor(session: Session, folder: string) {
    const [server] = JSON.parse(readFileSync(path.join(folder, ".tools.json"), "utf8")) as {
      url: string;
      headers: { name: string; value: string }[];
    }[];
    this.session = session;
    this.folder = folder;
    this.url = server!.url;
    this.token = server!.headers[0]!.value.replace("Bearer ", "");
  }

  get id(): string {
    return this.session.id;
  }

  async call(name: string, args: Record<string, unknown> = {}): Promise<ToolReply> {
    this.#mcp ??= await this.#connect();
    const result = await this.#mcp.callTool({ name, arguments: args });
    const [part] = result.content as { text: string }[];
    return replyOf(part?.text ?? "", result.isError === true);
  }

  /** Calls a tool and returns the JSON of the operation instead of the text. */
  async ask<T>(name: string, args: Record<string, unknown> = {}): Promise<T> {
    this.#mcp ??= await this.#connect();
    const result = await this.#mcp.callTool({ name, arguments: args, _meta: { "kinfold/json": true } });
    const [part] = result.content as { text: string }[];
    return JSON.parse(part?.text ?? "null") as T;
  }

  /** Sends the call as one plain request, so that its connection can be cut. */
  post(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<Response> {
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
    return fetch(this.url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
      },
      body: JSON.stringify(message),
      signal,
    });
  }

  async close(): Promise<void> {
    await this.#mcp?.close();
  }

  async #connect(): Promise<McpClient> {
    const mcp = new McpClient({ name: "test", version: "1" });
    const requestInit = { headers: { authorization: `Bearer ${this.token}` } };
    await mcp.connect(new StreamableHTTPClientTransport(new URL(this.url), { requestInit }));
    return mcp;
  }
}

/** Starts a root with the agent `spy` in a new folder, and reads its token. */
export async function openSpy(
  home: TestHome,
  client: Client,
  input: Omit<AskOf<"create">, "cwd" | "agent"> & { name: string },
): Promise<Spy> {
  const folder = path.join(home.work, input.name);
  mkdirSync(folder);
  const { session } = await client.create({ ...input, agent: "spy", cwd: folder });
  await eventually(`${input.name} has its token`, async () => existsSync(path.join(folder, ".tools.json")));
  return new Spy(session, folder);
}

export function replyOf(text: string, isError = false): ToolReply {
  const first = text.split("\n", 1)[0] ?? "";
  const head = first.startsWith("{") ? (JSON.parse(first) as Record<string, unknown>) : {};
  return { head, text, isError };
}
