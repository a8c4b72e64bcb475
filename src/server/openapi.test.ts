import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OPERATIONS, type OperationSpec } from "../contract/index.ts";
import { openapi } from "./openapi.ts";
import { queryName } from "./routes.ts";

interface Described {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: unknown;
}

describe("OpenAPI", () => {
  const whole = openapi();
  const paths = whole.paths as Record<string, Record<string, Described>>;

  it("describes every operation that has an address, at that address", () => {
    for (const [name, { http }] of Object.entries(OPERATIONS) as [string, OperationSpec][]) {
      if (http === undefined) continue;
      const path = http.path.replaceAll(/:(\w+)/g, "{$1}");
      assert.equal(paths[path]?.[http.method.toLowerCase()]?.operationId, name);
    }
  });

  it("every reference leads to a schema, and nothing is described twice", () => {
    const text = JSON.stringify(whole);
    const { schemas } = whole.components as { schemas: Record<string, unknown> };
    for (const [, name = ""] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
      assert.ok(schemas[name], name);
    assert.ok(!text.includes("$defs"));
    const ids = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    assert.equal(new Set(ids).size, ids.length);
  });

  it("a GET takes its fields from path and query, a POST from path and body", () => {
    const wait = paths["/api/sessions/{id}/wait"]?.get;
    assert.ok(wait?.requestBody === undefined);
    assert.ok(wait?.parameters?.some((field) => field.name === "timeout_ms" && field.in === "query"));
    const spawn = paths["/api/sessions/{id}/spawn"]?.post;
    assert.ok(spawn?.requestBody !== undefined);
    assert.deepEqual(
      spawn.parameters?.map((field) => [field.name, field.in, field.required]),
      [
        ["id", "path", true],
        ["Idempotency-Key", "header", false],
      ],
    );
  });

  it("a field's name in a query is snake_case", () => {
    assert.equal(queryName("timeoutMs"), "timeout_ms");
    assert.equal(queryName("id"), "id");
  });
});
