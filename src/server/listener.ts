import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { Refusal } from "../contract/refusal.ts";
import { SAFE_HEADERS, refusalBody, refusalHeaders, refusalOf } from "./refusal-response.ts";
import type { HttpRequest } from "./request.ts";
import { serveFeed } from "./feed.ts";
import type { serveMcp } from "./mcp/mcp.ts";
import type { BusyCalls } from "./mcp/busy.ts";
import { addOperationRoutes, methodsByPath } from "./routes.ts";
import type { Env, ServerOptions } from "./routes.ts";

const STALL_MS = 10_000;

/** Admits a request and identifies its caller, or throws a refusal. */
export type Enter = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<HttpRequest>;

export function createListener(
  options: ServerOptions,
  enter: Enter,
): (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void> {
  return getRequestListener(createApp(options, enter).fetch, { overrideGlobalObjects: false });
}

/** Requires the token on every route, even on unknown ones, so a stranger cannot learn which routes exist. */
function createApp(options: ServerOptions, enter: Enter): Hono<Env> {
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(SAFE_HEADERS)) c.res.headers.set(name, value);
  });
  app.use(async (c, next) => {
    c.set("request", await enter(c.env.incoming, c.env.outgoing));
    await next();
  });
  addOperationRoutes(app, options);
  app.get("/api/events", (c) => serveFeed(c, { ...options, stallMs: options.stallMs ?? STALL_MS }));
  app.get("/api/openapi.json", async (c) => c.json((await import("./openapi.ts")).openapi()));
  app.get("/", (c) =>
    c.text(`Kinfold ${options.version}. The API is under /api (described by /api/openapi.json).\n`),
  );
  // Loaded on first use: the protocol's code is large, and a daemon starts faster without it.
  let mcp: Promise<ReturnType<typeof serveMcp>> | null = null;
  app.all("/mcp", async (c) => {
    mcp ??= import("./mcp/mcp.ts").then((module) => module.serveMcp(options));
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
  let busyCalls: BusyCalls | null = null;
  app.onError(async (error, c) => {
    const refusal = refusalOf(error, options.log);
    if (refusal.code === "busy" && c.req.path === "/mcp") {
      busyCalls ??= new (await import("./mcp/busy.ts")).BusyCalls();
      const answer = await busyCalls.answer(c.env.incoming, refusal);
      if (answer !== null) return answer;
    }
    for (const [name, value] of Object.entries(refusalHeaders(refusal))) c.header(name, value);
    return c.json(refusalBody(refusal), refusal.status as 400);
  });
  return app;
}

/** Answers OPTIONS; refuses methods the path lacks. Sends no CORS header, so other origins get no access. */
function otherMethod(method: string, allowed: readonly string[]): Response {
  const allow = [...new Set([...allowed, ...(allowed.includes("GET") ? ["HEAD"] : []), "OPTIONS"])].join(
    ", ",
  );
  if (method === "OPTIONS") return new Response(null, { status: 204, headers: { allow } });
  const refusal = new Refusal(
    "method_not_allowed",
    `${method} is not allowed at this address; allowed: ${allow}.`,
    {
      allow,
    },
  );
  return Response.json(refusalBody(refusal), { status: refusal.status, headers: { allow } });
}
