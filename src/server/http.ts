import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { Refusal } from "../contract/index.ts";
import type { Config } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Gate, Operations } from "../operations/port.ts";
import { SAFE_HEADERS, refusalBody, refusalHeaders, refusalOf } from "./answer.ts";
import { Doorkeeper, bearerOf, refuseForeign } from "./auth.ts";
import type { HostRule, IsAgentPeer } from "./auth.ts";
import { Exchange, OpenExchanges } from "./exchange.ts";
import { serveFeed } from "./feed.ts";
import type { createMcpEndpoint } from "./mcp.ts";
import { addOperationRoutes, methodsByPath } from "./routes.ts";
import type { Env } from "./routes.ts";

export interface ServerOptions {
  readonly operations: Operations;
  readonly gate: Gate;
  readonly log: Log;
  readonly config: Pick<Config, "host" | "port" | "allowHosts" | "allowRemote" | "tls"> &
    Partial<Pick<Config, "mcp">>;
  readonly version: string;
  /** Whether a process that one of our agents started is behind a connection. */
  readonly isAgentPeer?: IsAgentPeer;
  /** How long a client of the feed may leave what was sent unread. */
  readonly stallMs?: number;
}

export interface HttpServer {
  /** Rejects with a refusal whose sentence says why it cannot listen. */
  listen(): Promise<{ url: string; port: number }>;
  /** Refuses what comes, ends waits and feeds, and resolves when all other requests are answered. */
  drain(): Promise<void>;
  /** Drains, then closes every connection. */
  close(): Promise<void>;
}

const DRAIN_MS = 5_000;
const STALL_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
const PLACES: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

export function createServer(options: ServerOptions): HttpServer {
  const rule: HostRule & { port: number } = {
    port: options.config.port,
    scheme: options.config.tls === null ? "http" : "https",
    host: ownName(options.config.host),
    allowHosts: options.config.allowHosts,
  };
  const open = new OpenExchanges(options.gate, options.log);
  const state = { isDraining: false };
  const serve = getRequestListener(createApp(options, open, state).fetch, { overrideGlobalObjects: false });
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    try {
      refuseForeign(incoming, rule);
    } catch (error) {
      return refuseRaw(outgoing, refusalOf(error, options.log));
    }
    incoming.url = (incoming.url ?? "/").replace(/^https?:\/\/[^/?#]*/i, "");
    void serve(incoming, outgoing);
  };
  let server: Server | null = null;
  const drain = async (): Promise<void> => {
    state.isDraining = true;
    open.endLong(shuttingDown());
    await Promise.race([open.empty(), later(DRAIN_MS)]);
  };
  return {
    async listen() {
      refuseOpenBind(options.config);
      server = await openServer(options.config, onRequest);
      rule.port = await listening(server, options.config);
      const place = PLACES[options.config.host] ?? options.config.host;
      const host = place.includes(":") ? `[${place}]` : place;
      return { url: `${rule.scheme}://${host}:${rule.port}`, port: rule.port };
    },
    drain,
    async close() {
      await drain();
      if (server === null) return;
      const closed = new Promise<void>((resolve) => server?.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      server = null;
    },
  };
}

/** Every route stands behind the token, unknown ones too: a stranger learns nothing of what exists. */
function createApp(options: ServerOptions, open: OpenExchanges, state: { isDraining: boolean }): Hono<Env> {
  const app = new Hono<Env>();
  const doorkeeper = new Doorkeeper(options.gate, options.isAgentPeer);
  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(SAFE_HEADERS)) c.res.headers.set(name, value);
  });
  app.use(async (c, next) => {
    const token = bearerOf(c.env.incoming);
    const caller = await doorkeeper.admit(token, c.env.incoming.socket);
    if (state.isDraining) throw shuttingDown();
    const exchange = new Exchange({ caller, token, outgoing: c.env.outgoing, log: options.log });
    open.add(exchange, c.env.outgoing);
    c.set("exchange", exchange);
    await next();
  });
  addOperationRoutes(app, options);
  app.get("/api/events", (c) => serveFeed(c, { ...options, stallMs: options.stallMs ?? STALL_MS }));
  app.get("/api/openapi.json", async (c) => c.json((await import("./openapi.ts")).openapi()));
  app.get("/", (c) =>
    c.text(`Kinfold ${options.version}. The API is under /api (described by /api/openapi.json).\n`),
  );
  // The protocol's code is large and most starts of a daemon do not need it at once.
  let mcp: Promise<ReturnType<typeof createMcpEndpoint>> | null = null;
  app.all("/mcp", async (c) => {
    mcp ??= import("./mcp.ts").then((module) => module.createMcpEndpoint(options));
    return (await mcp)(c);
  });
  const methods = methodsByPath()
    .set("/", ["GET"])
    .set("/api/events", ["GET"])
    .set("/api/openapi.json", ["GET"]);
  for (const [path, allowed] of methods) app.all(path, (c) => otherMethod(c.req.method, allowed));
  app.notFound(() => {
    throw new Refusal(
      "not_found",
      "There is nothing at this address; /api/openapi.json lists what there is.",
    );
  });
  app.onError((error, c) => {
    const refusal = refusalOf(error, options.log);
    for (const [name, value] of Object.entries(refusalHeaders(refusal))) c.header(name, value);
    return c.json(refusalBody(refusal), refusal.status as 400);
  });
  return app;
}

/** No CORS header is ever sent: what a page of another origin may do is nothing. */
function otherMethod(method: string, allowed: readonly string[]): Response {
  const allow = [...new Set([...allowed, ...(allowed.includes("GET") ? ["HEAD"] : []), "OPTIONS"])].join(
    ", ",
  );
  if (method === "OPTIONS") return new Response(null, { status: 204, headers: { allow } });
  const refusal = new Refusal("method_not_allowed", `${method} is not for this address; allowed: ${allow}.`, {
    allow,
  });
  return Response.json(refusalBody(refusal), { status: refusal.status, headers: { allow } });
}

function refuseRaw(outgoing: ServerResponse, refusal: Refusal): void {
  outgoing.writeHead(refusal.status, {
    ...SAFE_HEADERS,
    "content-type": "application/json",
    connection: "close",
  });
  outgoing.end(JSON.stringify(refusalBody(refusal)));
}

function shuttingDown(): Refusal {
  return new Refusal(
    "shutting_down",
    "The daemon is shutting down; nothing was changed. Ask again in a moment.",
  );
}

function refuseOpenBind(config: ServerOptions["config"]): void {
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(config.host);
  if (isLoopback || config.tls !== null || config.allowRemote) return;
  throw new Refusal(
    "invalid_input",
    `host ${config.host} is reachable from other machines, and without TLS the token could be read on the way; ` +
      "listen on 127.0.0.1, configure tls, or set allowRemote if the network itself is safe.",
    { field: "host" },
  );
}

/** Wildcards are no names: a browser that is sent to 0.0.0.0 is refused. */
function ownName(host: string): string | null {
  const bare = host.replaceAll(/[[\]]/g, "");
  if (Object.hasOwn(PLACES, bare)) return null;
  return bare.includes(":") ? `[${bare}]` : bare;
}

async function openServer(
  config: ServerOptions["config"],
  onRequest: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
): Promise<Server> {
  const settings = { keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false };
  if (config.tls === null) return createHttpServer(settings, onRequest);
  const [cert, key] = await Promise.all([pem("tls.cert", config.tls.cert), pem("tls.key", config.tls.key)]);
  return createHttpsServer({ ...settings, cert, key }, onRequest);
}

async function pem(field: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new Refusal("invalid_input", `${field} names ${path}, which cannot be read: ${String(error)}.`, {
      field,
    });
  }
}

function listening(server: Server, config: ServerOptions["config"]): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, config)));
    server.listen({ host: config.host.replaceAll(/[[\]]/g, ""), port: config.port }, () =>
      resolve((server.address() as AddressInfo).port),
    );
  });
}

function cannotListen(error: NodeJS.ErrnoException, config: ServerOptions["config"]): Refusal {
  const why: Record<string, string> = {
    EADDRINUSE: `port ${config.port} on ${config.host} is taken by another program; stop it, or choose another port with --port`,
    EACCES: `port ${config.port} may only be used by the system; choose one above 1023 with --port`,
    EADDRNOTAVAIL: `${config.host} is not an address of this machine; listen on 127.0.0.1`,
  };
  const sentence =
    why[error.code ?? ""] ?? `listening on ${config.host}:${config.port} failed: ${error.message}`;
  return new Refusal("not_available", `The daemon cannot listen: ${sentence}.`, { code: error.code ?? null });
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
