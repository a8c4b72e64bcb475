import { z } from "zod";
import * as contract from "../contract/index.ts";
import { queryName } from "./routes.ts";

type Json = Record<string, unknown>;

/** Returns the OpenAPI 3.1 description of the HTTP surface, generated from the operation table. */
export function openapi(): Json {
  const components: Json = { Error: errorSchema() };
  const paths: Record<string, Json> = {};
  for (const [name, operation] of Object.entries(contract.OPERATIONS) as [string, contract.OperationSpec][]) {
    if (operation.http === undefined) continue;
    const path = operation.http.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = {
      ...paths[path],
      [operation.http.method.toLowerCase()]: describe(name, operation, components),
    };
  }
  paths["/api/events"] = { get: eventsDescription(components) };
  paths["/api/openapi.json"] = { get: ownDescription() };
  return {
    openapi: "3.1.0",
    info: {
      title: "Kinfold",
      version: contract.CONTRACT_VERSION,
      description: "One daemon that owns coding-agent sessions forming trees.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "http://127.0.0.1:4680" }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: components,
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

function describe(name: string, operation: contract.OperationSpec, components: Json): Json {
  const input = schemaOf(operation.input, "input", components) as { properties?: Json; required?: string[] };
  const inPath = [...(operation.http?.path.matchAll(/:(\w+)/g) ?? [])].map((match) => match[1] ?? "");
  const rest = Object.entries(input.properties ?? {}).filter(([field]) => !inPath.includes(field));
  const required = new Set(input.required);
  const parameters = inPath.map((field) =>
    parameter("path", field, { schema: input.properties?.[field], required: true }),
  );
  if (operation.http?.method === "GET") {
    parameters.push(
      ...rest.map(([field, schema]) =>
        parameter("query", queryName(field), { schema, required: required.has(field) }),
      ),
    );
  }
  if (rest.some(([field]) => field === "key")) {
    parameters.push(parameter("header", "Idempotency-Key", { schema: { type: "string", maxLength: 200 } }));
  }
  return {
    operationId: name,
    summary: operation.summary,
    ...(parameters.length > 0 && { parameters }),
    ...(operation.http?.method !== "GET" && rest.length > 0 && { requestBody: body(rest, required) }),
    responses: {
      200: { description: "Done.", content: json(schemaOf(operation.output, "output", components)) },
      ...refusalResponses(operation.refusals),
    },
  };
}

function parameter(place: string, name: string, is: { schema: unknown; required?: boolean }): Json {
  const { description, ...bare } = (is.schema ?? {}) as Json;
  return {
    name,
    in: place,
    required: is.required ?? false,
    ...(description !== undefined && { description }),
    schema: bare,
  };
}

function body(fields: [string, unknown][], required: Set<string>): Json {
  const names = fields.map(([field]) => field).filter((field) => required.has(field));
  return {
    required: names.length > 0,
    content: json({
      type: "object",
      properties: Object.fromEntries(fields),
      ...(names.length > 0 && { required: names }),
      additionalProperties: false,
    }),
  };
}

/** Builds one response per status, with that status's codes. `default` is for the server's own refusals. */
function refusalResponses(codes: readonly contract.RefusalCode[]): Json {
  const byStatus = new Map<number, string[]>();
  for (const code of new Set(codes)) {
    const [status, meaning] = contract.REFUSALS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), `\`${code}\`: ${meaning}`]);
  }
  const content = json({ $ref: "#/components/schemas/Error" });
  const listed = [...byStatus].map(([status, lines]) => [
    String(status),
    { description: lines.join("\n"), content },
  ]);
  return { ...Object.fromEntries(listed), default: { description: "A refusal.", content } };
}

function eventsDescription(components: Json): Json {
  schemaOf(contract.Event, "output", components);
  schemaOf(contract.Fragment, "output", components);
  return {
    operationId: "events",
    summary: "The feed: numbered events from a cursor onward, then live, as server-sent events.",
    parameters: [
      parameter("query", "after", { schema: { type: "string", description: "the last event's cursor" } }),
      parameter("query", "tree", { schema: { type: "string", description: "only this tree" } }),
      parameter("query", "session", { schema: { type: "string", description: "only this session" } }),
      parameter("header", "Last-Event-ID", { schema: { type: "string", description: "as `after`" } }),
    ],
    responses: {
      200: { description: "A stream that ends with the connection.", content: { "text/event-stream": {} } },
      ...refusalResponses(["feed_reset", "not_found"]),
    },
  };
}

function ownDescription(): Json {
  return {
    operationId: "openapi",
    summary: "This description.",
    responses: { 200: { description: "Done.", content: json({ type: "object" }) } },
  };
}

function errorSchema(): Json {
  return {
    type: "object",
    properties: {
      error: {
        type: "object",
        properties: {
          code: { type: "string", enum: Object.keys(contract.REFUSALS) },
          message: { type: "string" },
          details: { type: "object" },
        },
        required: ["code", "message", "details"],
      },
    },
    required: ["error"],
  };
}

const json = (schema: unknown): Json => ({ "application/json": { schema } });

/** Schemas that are defined once under a name and referenced everywhere else. */
const NAMED = new Map<unknown, string>(
  Object.entries({
    Agent: contract.Agent,
    Effective: contract.Effective,
    Entry: contract.Entry,
    Event: contract.Event,
    Fragment: contract.Fragment,
    Message: contract.Message,
    Receipt: contract.Receipt,
    Session: contract.Session,
    Trigger: contract.Trigger,
    Turn: contract.Turn,
    Usage: contract.Usage,
  }).map(([name, schema]) => [schema, name]),
);

function schemaOf(schema: z.ZodType, io: "input" | "output", components: Json): Json {
  const names = z.registry<{ id?: string }>();
  names.get = ((item: z.ZodType) => {
    const id = NAMED.get(item);
    return { ...z.globalRegistry.get(item), ...(id !== undefined && { id }) };
  }) as typeof names.get;
  const { $schema: _, $defs, ...made } = z.toJSONSchema(schema, { io, metadata: names }) as Json;
  for (const [name, definition] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
    const { id: _id, ...rest } = definition;
    components[name] = refer(rest);
  }
  const own = NAMED.get(schema);
  if (own === undefined) return refer(made) as Json;
  const { id: _id, ...rest } = made;
  components[own] = refer(rest);
  return { $ref: `#/components/schemas/${own}` };
}

function refer(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(refer);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === "$ref" ? String(item).replace("#/$defs/", "#/components/schemas/") : refer(item),
    ]),
  );
}
