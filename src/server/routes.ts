import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { OPERATIONS, Refusal } from "../contract/index.ts";
import type { CancelOutput, Config, OperationName, OperationSpec, SpawnOutput } from "../contract/index.ts";
import type { Call, CallerContext, Gate, Operations } from "../operations/port.ts";
import type { Log } from "../log.ts";
import type { IsAgentPeer } from "../system/agent-peer.ts";
import { readJson } from "./body.ts";
import type { HttpRequest } from "./request.ts";
import { parseInput, unknownField } from "./input.ts";

export interface Env {
  Bindings: HttpBindings;
  Variables: { request: HttpRequest };
}

export interface ServerOptions {
  readonly operations: Operations;
  readonly gate: Gate;
  readonly log: Log;
  readonly config: Pick<Config, "host" | "port" | "allowHosts" | "allowRemote" | "tls"> &
    Partial<Pick<Config, "mcp">>;
  readonly version: string;
  /** True for a connection from a process that one of our agents started. */
  readonly isAgentPeer?: IsAgentPeer;
  /** How long a client of the feed may leave sent data unread. */
  readonly stallMs?: number;
}

type RouteOptions = Pick<ServerOptions, "operations" | "gate" | "log">;
type Ctx = Context<Env>;
type Http = NonNullable<OperationSpec["http"]>;
type Ask = (caller: CallerContext, input: object, call: Call) => Promise<unknown>;

export function addOperationRoutes(app: Hono<Env>, options: RouteOptions): void {
  for (const [name, spec] of operationRows()) {
    if (spec.http === undefined) continue;
    const http = spec.http;
    app.on(http.method, http.path, (c) => answer(c, { ...options, name, spec, http }));
  }
}

export function methodsByPath(): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const [, spec] of operationRows()) {
    if (spec.http === undefined) continue;
    methods.set(spec.http.path, [...(methods.get(spec.http.path) ?? []), spec.http.method]);
  }
  return methods;
}

function operationRows(): [OperationName, OperationSpec][] {
  return Object.entries(OPERATIONS) as [OperationName, OperationSpec][];
}

interface Row extends RouteOptions {
  readonly name: OperationName;
  readonly spec: OperationSpec;
  readonly http: Http;
}

async function answer(c: Ctx, row: Row): Promise<Response> {
  const request = c.var.request;
  refuseSessions(request.caller, row);
  const text = row.name === "transcript" ? textAsked(c) : null;
  const raw = row.http.method === "GET" ? fromQuery(c, row.spec) : await fromBody(c, row.spec);
  if (text !== null && raw.format === undefined) raw.format = text;
  const input = parseInput(row.spec.input, raw, {
    nameOf: row.http.method === "GET" ? queryName : undefined,
  });
  request.isLong = row.name === "wait";
  const output = await ask(request, row, input);
  if (text === null) return c.json(output as object);
  return c.body((output as { text: string }).text, 200, {
    "content-type": `${mediaTypes[text]}; charset=utf-8`,
  });
}

/**
 * Runs the operation. If the request was ended meanwhile, a wait and an operation that failed throw the
 * refusal that ended the request.
 */
async function ask(request: HttpRequest, row: Row, input: object): Promise<unknown> {
  const startedAt = performance.now();
  const run = row.operations[row.name] as Ask;
  let output: unknown;
  try {
    output = await run(request.caller, input, { signal: request.signal, callId: null });
  } catch (error) {
    throw request.ending ?? error;
  }
  if (request.caller.kind === "session") keepLost(request, row, output);
  if (row.http.method !== "GET") {
    const by = { kind: request.caller.kind, id: request.caller.id };
    row.log.info(
      { operation: row.name, by, ms: Math.round(performance.now() - startedAt) },
      "request over HTTP",
    );
  }
  if (request.ending !== null && request.isLong) throw request.ending;
  return output;
}

/**
 * Registers what to do if the answer does not arrive. Otherwise a session would spawn the same child again,
 * or never get the messages that the answer carried.
 */
function keepLost(request: HttpRequest, { name, gate }: Row, output: unknown): void {
  const { caller } = request;
  if (name === "spawn") request.onLost(() => gate.spawnReplyLost(caller, (output as SpawnOutput).session.id));
  if (name === "cancel") request.onLost(() => gate.giveBack(caller, (output as CancelOutput).taken));
}

function refuseSessions(caller: CallerContext, row: Row): void {
  if (caller.kind !== "session" || row.spec.sessions) return;
  throw new Refusal(
    "forbidden",
    `A session may not ask ${row.name}; only a person may. Use your Kinfold tools.`,
    {
      operation: row.name,
    },
  );
}

/** Reads path and query. A query name may be snake_case, as documented, or camelCase, as the field itself. */
function fromQuery(c: Ctx, spec: OperationSpec): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  const known = Object.keys(spec.input.shape);
  for (const [key, values] of Object.entries(c.req.queries())) {
    const field = key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (!known.includes(field)) throw unknownField(key, queryNames(c, spec));
    if (values.length > 1 || Object.hasOwn(input, field))
      throw badField(key, "is given twice in the address");
    if (values[0] === "") throw badField(key, "is empty; leave it out or give it a value");
    input[field] = values[0];
  }
  return withPath(c, input);
}

function queryNames(c: Ctx, spec: OperationSpec): string[] {
  const inPath = Object.keys(c.req.param());
  return Object.keys(spec.input.shape)
    .filter((field) => !inPath.includes(field))
    .map(queryName);
}

/** Returns the query name of a field: `timeoutMs` becomes `timeout_ms`. */
export function queryName(field: string): string {
  return field.replaceAll(/[A-Z]/g, "_$&").toLowerCase();
}

async function fromBody(c: Ctx, spec: OperationSpec): Promise<Record<string, unknown>> {
  if (Object.keys(c.req.queries()).length > 0) {
    throw new Refusal("invalid_input", "Fields go into the JSON body here; leave the query out.");
  }
  const body = (await readJson(c.env.incoming)) ?? {};
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Refusal("invalid_input", "The body must be one JSON object.");
  }
  const input = withPath(c, { ...body });
  const key = c.req.header("idempotency-key");
  if (key === undefined || !Object.hasOwn(spec.input.shape, "key")) return input;
  if (input.key !== undefined && input.key !== key)
    throw badField("key", "differs from the Idempotency-Key header");
  return { ...input, key };
}

function withPath(c: Ctx, input: Record<string, unknown>): Record<string, unknown> {
  for (const [field, value] of Object.entries<string>(c.req.param())) {
    if (Object.hasOwn(input, field) && input[field] !== value)
      throw badField(field, "differs from the one in the path");
    input[field] = value;
  }
  return input;
}

function badField(field: string, what: string): Refusal {
  return new Refusal("invalid_input", `${field} ${what}.`, { field });
}

const mediaTypes = { markdown: "text/markdown", text: "text/plain" } as const;

/** A transcript is JSON, unless the first media type in Accept that we know is Markdown or plain text. */
function textAsked(c: Ctx): keyof typeof mediaTypes | null {
  for (const part of (c.req.header("accept") ?? "").split(",")) {
    const type = part.split(";")[0]?.trim().toLowerCase();
    if (type === "application/json" || type === "*/*") return null;
    if (type === "text/markdown") return "markdown";
    if (type === "text/plain") return "text";
  }
  return null;
}
