import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Refusal } from "../contract/refusal.ts";
import type { Config } from "../contract/index.ts";
import type { CallerContext } from "../operations/port.ts";
import { Admission, RequestPacer } from "./admission.ts";
import { SAFE_HEADERS, refusalBody, refusalHeaders, refusalOf } from "./refusal-response.ts";
import type { createListener, Enter } from "./listener.ts";
import { Authenticator, bearerOf, refuseForeign } from "./auth.ts";
import type { HostRule } from "./auth.ts";
import type { ServerOptions } from "./routes.ts";
import { HttpRequest, OpenHttpRequests } from "./request.ts";

export interface HttpServer {
  /** Rejects with a refusal that says why the server cannot listen. */
  listen(): Promise<{ url: string; port: number }>;
  /** Refuses new requests, ends waits and feeds, and waits up to `DRAIN_MS` for all other requests. */
  drain(): Promise<void>;
  /** Drains, then closes every connection. */
  close(): Promise<void>;
}

/** Kept small: all waiting connections are accepted at once, which delays other work. */
const BACKLOG = 48;
const DRAIN_MS = 5_000;
const KEEP_ALIVE_MS = 65_000;
const PLACES: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

export function createServer(options: ServerOptions): HttpServer {
  const rule = hostRule(options.config);
  const open = new OpenHttpRequests(options.gate, options.log);
  const state = { isDraining: false };
  const authenticator = new Authenticator(options.gate, options.isAgentPeer);
  const enter = doorOf({ ...options, authenticator }, open, state);
  const serve = router(options, enter);
  const pacer = new RequestPacer();
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    try {
      refuseForeign(incoming, rule);
    } catch (error) {
      outgoing.setHeader("connection", "close");
      return sendRefusal(outgoing, refusalOf(error, options.log));
    }
    incoming.url = (incoming.url ?? "/").replace(/^https?:\/\/[^/?#]*/i, "");
    const isHealth = incoming.method === "GET" && incoming.url === "/api/health";
    if (isHealth) void answerHealth({ ...options, authenticator, state }, { incoming, outgoing });
    else pacer.enter(() => void serve(incoming, outgoing));
  };
  let server: Server | null = null;
  const drain = async (): Promise<void> => {
    state.isDraining = true;
    open.endLong(shuttingDown());
    await Promise.race([open.empty(), pause(DRAIN_MS, undefined, { ref: false })]);
  };
  return {
    async listen() {
      refuseOpenBind(options.config);
      server = await openServer(options.config, onRequest);
      rule.port = await listening(server, options.config);
      return { url: urlOf(options.config, rule.port), port: rule.port };
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

/** Admits a request with a valid token, unless the daemon is shutting down. */
function doorOf(
  options: ServerOptions & { readonly authenticator: Authenticator },
  open: OpenHttpRequests,
  state: { isDraining: boolean },
): Enter {
  const { authenticator } = options;
  const admission = new Admission();
  const identified = new RequestPacer();
  const enter = (
    caller: CallerContext,
    incoming: IncomingMessage,
    { token, outgoing }: { token: string; outgoing: ServerResponse },
  ): HttpRequest => {
    if (state.isDraining) throw shuttingDown();
    const admitted = admission.admit({
      caller,
      isWrite: incoming.method !== "GET" && incoming.url !== "/mcp",
      isStop: incoming.method === "POST" && STOP.test(incoming.url ?? ""),
      writesWaiting: options.gate.writesWaiting(),
    });
    const request = new HttpRequest({ caller, token, outgoing, log: options.log, admitted });
    open.add(request, outgoing);
    return request;
  };
  return async (incoming, outgoing) => {
    const token = bearerOf(incoming);
    const caller = await authenticator.admit(token, incoming.socket);
    try {
      return enter(caller, incoming, { token, outgoing });
    } finally {
      // Callers that wait for the same process lookup are all identified at once. `passed` lets only a few of
      // them continue at a time.
      await identified.passed();
    }
  };
}

const STOP = /^\/api\/sessions\/[^/?]+\/cancel(?:$|\?)/;

/** Loads the router on the first request: loading it and `fetch` takes a third of the daemon's start time. */
function router(options: ServerOptions, enter: Enter): ReturnType<typeof createListener> {
  let listener: Promise<ReturnType<typeof createListener>> | null = null;
  return async (incoming, outgoing) => {
    listener ??= import("./listener.ts").then((module) => module.createListener(options, enter));
    await (
      await listener
    )(incoming, outgoing);
  };
}

/** Answers without the router and the limits on requests, so that a busy daemon still reports its health. */
async function answerHealth(
  options: ServerOptions & { readonly authenticator: Authenticator; readonly state: { isDraining: boolean } },
  { incoming, outgoing }: { incoming: IncomingMessage; outgoing: ServerResponse },
): Promise<void> {
  try {
    const caller = await options.authenticator.admitToHealth(bearerOf(incoming), incoming.socket);
    if (options.state.isDraining) throw shuttingDown();
    const { signal } = new AbortController();
    const health = await options.operations.health(caller, {}, { signal, callId: null });
    send(outgoing, 200, health);
  } catch (error) {
    sendRefusal(outgoing, refusalOf(error, options.log));
  }
}

export function sendRefusal(outgoing: ServerResponse, refusal: Refusal): void {
  for (const [name, value] of Object.entries(refusalHeaders(refusal))) outgoing.setHeader(name, value);
  send(outgoing, refusal.status, refusalBody(refusal));
}

function send(outgoing: ServerResponse, status: number, body: object): void {
  outgoing.writeHead(status, { ...SAFE_HEADERS, "content-type": "application/json" });
  outgoing.end(JSON.stringify(body));
}

function shuttingDown(): Refusal {
  return new Refusal(
    "shutting_down",
    "The daemon is shutting down; nothing was changed. Ask again in a moment.",
  );
}

export function refuseOpenBind(config: ServerOptions["config"]): void {
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(config.host);
  if (isLoopback || config.tls !== null || config.allowRemote) return;
  throw new Refusal(
    "invalid_input",
    `host ${config.host} is reachable from other machines, and without TLS the token could be read on the way; ` +
      "listen on 127.0.0.1, configure tls, or set allowRemote if the network itself is safe.",
    { field: "host" },
  );
}

/** Returns the address at which this machine reaches the server. */
export function urlOf(config: Pick<Config, "host" | "tls">, port: number): string {
  const place = PLACES[config.host] ?? config.host;
  const host = place.includes(":") ? `[${place}]` : place;
  return `${config.tls === null ? "http" : "https"}://${host}:${port}`;
}

/** Returns which Host headers are accepted. A wildcard address is not one of them. */
export function hostRule({ host, port, tls, allowHosts }: ServerOptions["config"]): HostRule {
  const bare = host.replaceAll(/[[\]]/g, "");
  const name = bare.includes(":") ? `[${bare}]` : bare;
  return {
    port,
    scheme: tls === null ? "http" : "https",
    host: Object.hasOwn(PLACES, bare) ? null : name,
    allowHosts,
  };
}

export async function openServer(
  config: ServerOptions["config"],
  onRequest: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
): Promise<Server> {
  const settings = { keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false };
  // An import of node:http would also load `fetch`, which is slow.
  if (config.tls === null) return process.getBuiltinModule("node:http").createServer(settings, onRequest);
  const { createServer: createSecure } = process.getBuiltinModule("node:https");
  const [cert, key] = await Promise.all([pem("tls.cert", config.tls.cert), pem("tls.key", config.tls.key)]);
  return createSecure({ ...settings, cert, key }, onRequest);
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

export function listening(server: Server, config: ServerOptions["config"]): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, config)));
    const host = config.host.replaceAll(/[[\]]/g, "");
    server.listen({ host, port: config.port, backlog: BACKLOG }, () =>
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
