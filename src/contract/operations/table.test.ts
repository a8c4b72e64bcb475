import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import {
  Config,
  Limits,
  OPERATIONS,
  type OperationSpec,
  REFUSALS,
  Refusal,
  type RefusalCode,
  shortId,
} from "../index.ts";

const operations = Object.entries(OPERATIONS) as [string, OperationSpec][];

describe("the table of operations", () => {
  it("every operation is offered somewhere", () => {
    for (const [name, { http, mcp }] of operations) assert.ok(http ?? mcp, name);
  });

  it("no two operations share an address or a tool", () => {
    const addresses = operations.flatMap(([, { http }]) => (http ? [`${http.method} ${http.path}`] : []));
    const tools = operations.flatMap(([, { mcp }]) => mcp ?? []);
    assert.equal(new Set(addresses).size, addresses.length);
    assert.equal(new Set(tools).size, tools.length);
  });

  it("a variable in an address is a field of the input", () => {
    for (const [name, { http, input }] of operations) {
      for (const [, field = ""] of http?.path.matchAll(/:(\w+)/g) ?? [])
        assert.ok(field in input.shape, name);
    }
  });

  it("an unknown field is refused by every operation", () => {
    for (const [name, { input }] of operations) {
      const { error } = input.safeParse({ surelyUnknown: 1 });
      const codes = error?.issues.map(({ code }) => code) ?? [];
      assert.ok(codes.includes("unrecognized_keys"), name);
    }
  });

  it("what is asked with GET can be written in a query: text is enough for every field", () => {
    for (const [name, { http, input }] of operations) {
      if (http?.method !== "GET") continue;
      for (const [field, schema] of Object.entries(input.shape)) {
        const texts = ["1", "true", "text", "idle", "managed", "completion", "markdown", "person", "result"];
        assert.ok(
          texts.some((text) => (schema as z.ZodType).safeParse(text).success),
          `${name}.${field}`,
        );
      }
    }
  });

  it("every output is described, and says no refusal twice", () => {
    for (const [name, { output, refusals, summary }] of operations) {
      assert.equal((z.toJSONSchema(output) as { type?: string }).type, "object", name);
      assert.equal(new Set(refusals).size, refusals.length, name);
      assert.match(summary, /^[A-Z].*\.$/, name);
    }
  });
});

describe("refusals", () => {
  it("every code is snake_case, has a status of its kind and a sentence", () => {
    for (const [code, [status, meaning]] of Object.entries(REFUSALS)) {
      assert.match(code, /^[a-z]+(_[a-z]+)*$/);
      assert.ok(status >= 400 && status < 600, code);
      assert.match(meaning, /^[A-Z].*\.$/, code);
    }
  });

  it("a refusal carries its code, its status and its details", () => {
    for (const code of Object.keys(REFUSALS) as RefusalCode[]) {
      const refusal = new Refusal(code, "no", { limit: 8 });
      assert.equal(refusal.code, code);
      assert.equal(refusal.status, REFUSALS[code][0]);
      assert.deepEqual(refusal.details, { limit: 8 });
    }
  });
});

describe("configuration", () => {
  it("nothing given is a whole configuration with the documented limits", () => {
    const { limits, host, port } = Config.parse({});
    assert.deepEqual(limits, Limits.parse({}));
    assert.deepEqual([host, port], ["127.0.0.1", 4680]);
    const { depthMax, childrenMax, sessionsMax, spawnsPerMinuteMax, spawnsMax, turnsMax, processesMax } =
      limits;
    assert.deepEqual(
      [depthMax, childrenMax, sessionsMax, spawnsPerMinuteMax, spawnsMax, turnsMax, processesMax],
      [5, 8, 64, 20, 500, 16, 32],
    );
  });

  it("one limit given leaves the others as they are", () => {
    assert.deepEqual(Config.parse({ limits: { depthMax: 2 } }).limits, { ...Limits.parse({}), depthMax: 2 });
  });
});

it("a short id is the part of a UUIDv7 that is random", () => {
  assert.equal(shortId("01a1e129-a61a-70d9-9b11-86ce1167a7b7"), "1167a7b7");
});
