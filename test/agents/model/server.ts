import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { decide } from "./script.ts";
import type { Decision, Rule } from "./script.ts";
import type { Api, Body, ModelMessage, ModelRequest, Wire } from "./request.ts";
import { anthropic } from "./wire-anthropic.ts";
import { completions } from "./wire-completions.ts";
import { gemini } from "./wire-gemini.ts";
import { responses } from "./wire-responses.ts";

/** One answered request: what the model was sent, and what it answered. */
export interface Asked {
  /** When the request arrived, on the clock of `performance.now()`. */
  readonly at: number;
  readonly api: Api;
  readonly rule: string;
  readonly step: number;
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly string[];
  readonly answer: string;
  /** The agent disconnected before the answer was complete. */
  isCut: boolean;
  isOver: boolean;
}

export interface Model {
  readonly url: string;
  readonly asked: Asked[];
  play(rules: readonly Rule[]): void;
  close(): Promise<void>;
}

/** Starts a model on loopback that speaks every vendor's API and answers only by its script. */
export async function startModel(rules: readonly Rule[] = []): Promise<Model> {
  let script = rules;
  const asked: Asked[] = [];
  const failures = new Map<string, number>();
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    });
  });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "/", "http://model");
    const body = await bodyOf(request);
    const api = request.method === "POST" ? apiOf(url.pathname) : null;
    if (api === null) return sendJson(response, 200, otherAnswer(url.pathname, body));
    const parsed = WIRES[api].parse(body, url);
    const decision = decide(script, parsed);
    const entry = noteOf(api, parsed, decision);
    asked.push(entry);
    response.on("close", () => {
      entry.isOver = true;
      entry.isCut = !response.writableFinished;
    });
    await play(response, { wire: WIRES[api], request: parsed, decision, failures });
  };
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    play(next) {
      script = next;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

const WIRES: Readonly<Record<Api, Wire>> = { anthropic, responses, completions, gemini };

interface Playing {
  readonly wire: Wire;
  readonly request: ModelRequest;
  readonly decision: Decision;
  readonly failures: Map<string, number>;
}

async function play(response: ServerResponse, playing: Playing): Promise<void> {
  const { wire, request, decision } = playing;
  const { how } = decision;
  if (how.delayMs !== undefined) await pause(how.delayMs, undefined, { ref: false });
  if (response.closed) return;
  if (how.error !== undefined && mayFail(playing, how.error.times)) {
    sendJson(response, how.error.status, wire.error(how.error.status, how.error.message));
    return;
  }
  if (!request.isStream) {
    if (how.hang !== true) sendJson(response, 200, wire.whole(decision.answer, request.model));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const frames = wire.stream(decision.answer, request.model);
  const isCut = how.cut !== undefined && mayFail(playing, how.cut.times);
  const shown = how.hang === true || isCut ? frames.slice(0, Math.ceil(frames.length / 2)) : frames;
  for (const [event, data] of shown) {
    const name = event === null ? "" : `event: ${event}\n`;
    response.write(`${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }
  if (isCut) response.destroy();
  else if (how.hang !== true) response.end();
}

function mayFail({ decision, failures }: Playing, times = Number.POSITIVE_INFINITY): boolean {
  const key = `${decision.rule}#${decision.step}`;
  const count = (failures.get(key) ?? 0) + 1;
  failures.set(key, count);
  return count <= times;
}

function noteOf(api: Api, request: ModelRequest, { rule, step, answer }: Decision): Asked {
  const calls = answer.calls.map(({ tool, input }) => `${tool.name}(${JSON.stringify(input)})`);
  return {
    at: performance.now(),
    api,
    rule,
    step,
    system: request.system,
    messages: request.messages,
    tools: request.tools.map((tool) => tool.name),
    answer: [answer.text, ...calls].filter((text) => text !== "").join(" "),
    isCut: false,
    isOver: false,
  };
}

function apiOf(path: string): Api | null {
  if (path.endsWith("/messages")) return "anthropic";
  if (path.endsWith("/responses")) return "responses";
  if (path.endsWith("/chat/completions")) return "completions";
  return /:(?:streamGenerateContent|generateContent)$/.test(path) ? "gemini" : null;
}

/** Answers the secondary requests of agents: token counts and lists of models. */
function otherAnswer(path: string, body: Body): unknown {
  const tokens = Math.ceil(JSON.stringify(body).length / 4);
  if (path.endsWith("/count_tokens")) return { input_tokens: tokens };
  if (path.endsWith(":countTokens")) return { totalTokens: tokens };
  return path.endsWith("/models") ? { object: "list", data: [], models: [] } : {};
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

async function bodyOf(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = unpacked(Buffer.concat(chunks), request.headers["content-encoding"]);
  return bytes.length === 0 ? {} : (JSON.parse(bytes.toString("utf8")) as Body);
}

function unpacked(bytes: Buffer, encoding: string | undefined): Buffer {
  if (encoding === "gzip") return gunzipSync(bytes);
  if (encoding === "br") return brotliDecompressSync(bytes);
  return encoding === "zstd" ? zstdDecompressSync(bytes) : bytes;
}
