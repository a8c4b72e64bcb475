import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import {
  ALIAS_WORDS,
  type JsonSchema,
  OPERATIONS,
  type OperationSpec,
  TOOL_WORDS,
  type ToolRole,
  type ToolWords,
  instructionsFor,
  toolsFor,
} from "../index.ts";

const rows: readonly OperationSpec[] = Object.values(OPERATIONS);
const inputOf = ({ name }: ToolWords): z.ZodObject =>
  (rows.find(({ mcp }) => mcp === name) ?? OPERATIONS.spawn).input;
const list = (role: ToolRole, aliases = false): string =>
  JSON.stringify({ tools: toolsFor(role, { aliases }) });
const names = (role: ToolRole): string[] => toolsFor(role, { aliases: false }).map(({ name }) => name);

describe("the words of the tools", () => {
  it("every tool of the operation table has words, under the same name, and no other has", () => {
    const tools = rows.flatMap(({ mcp }) => mcp ?? []);
    assert.deepEqual(TOOL_WORDS.map(({ name }) => name).toSorted(), tools.toSorted());
    assert.ok(!tools.includes(ALIAS_WORDS.name));
  });

  it("what is advertised is what the operation takes", () => {
    for (const words of [...TOOL_WORDS, ALIAS_WORDS] as readonly ToolWords[]) {
      const input = inputOf(words);
      for (const [name, schema] of Object.entries(words.parameters)) {
        const field = input.shape[words.fields?.[name] ?? name] as z.ZodType | undefined;
        assert.ok(field, `${words.name}.${name}`);
        for (const sample of samples(schema)) {
          const { error } = field.safeParse(sample);
          assert.equal(error, undefined, `${words.name}.${name} takes ${JSON.stringify(sample)}`);
        }
        assert.deepEqual(
          choices(schema),
          choices(z.toJSONSchema(field, { io: "input" })),
          `${words.name}.${name}`,
        );
      }
    }
  });

  it("what must be given is marked so, and nothing else is", () => {
    for (const words of TOOL_WORDS as readonly ToolWords[]) {
      const json = z.toJSONSchema(inputOf(words), { io: "input" });
      const fields = words.required.map((name) => words.fields?.[name] ?? name);
      const decided = words.name === "spawn_session" ? ["id"] : [];
      assert.deepEqual([...fields, ...decided].toSorted(), (json.required ?? []).toSorted(), words.name);
    }
  });

  it("each says what it is for in at most two sentences", () => {
    for (const { name, description } of TOOL_WORDS as readonly ToolWords[]) {
      assert.ok(description.split(/[.!?](?:\s|$)/).filter(Boolean).length <= 2, name);
    }
  });
});

describe("the lists", () => {
  it("one that may not spawn sees six, an attached root thirteen, everyone else fifteen", () => {
    assert.deepEqual(names("leaf"), [
      "get_session",
      "fire_trigger",
      "ask_user_question",
      "plan_review",
      "session_search",
      "checkpoint",
    ]);
    assert.equal(names("attached").length, 13);
    assert.equal(names("full").length, 15);
    assert.deepEqual(
      names("full").filter((name) => !names("attached").includes(name)),
      ["ask_user_question", "plan_review"],
    );
  });

  it("each fits: 8,192 bytes for all, less for the others", () => {
    const bytes = (role: ToolRole): number => Buffer.byteLength(list(role));
    assert.ok(bytes("full") <= 8_192, `${bytes("full")} bytes`);
    assert.ok(bytes("attached") <= 7_168, `${bytes("attached")} bytes`);
    assert.ok(bytes("leaf") <= 3_072, `${bytes("leaf")} bytes`);
  });

  it("each is the same bytes every time", () => {
    for (const role of ["leaf", "attached", "full"] as const) assert.equal(list(role), list(role));
  });

  it("create_session is listed only where that is configured, and never to one that may not spawn", () => {
    assert.ok(!list("full").includes("create_session"));
    assert.ok(
      list("full", true).includes('"create_session"') && list("attached", true).includes('"create_session"'),
    );
    assert.equal(list("leaf", true), list("leaf"));
  });

  it("nine are always loaded, five have titles, and no client has to ask before it calls one", () => {
    const all = toolsFor("full", { aliases: false });
    const loaded = all
      .filter(({ _meta }) => _meta?.["anthropic/alwaysLoad"] === true)
      .map(({ name }) => name);
    assert.deepEqual(loaded, [
      "spawn_session",
      "subagent",
      "wait_session",
      "tell_child",
      "list_sessions",
      "respond_to_trigger",
      "escalate_trigger",
      "ask_user_question",
      "plan_review",
    ]);
    assert.equal(all.filter(({ title }) => title !== undefined).length, 5);
    const reads = all.filter(({ annotations }) => annotations.readOnlyHint === true).map(({ name }) => name);
    assert.deepEqual(reads, [
      "wait_session",
      "list_sessions",
      "get_session",
      "session_search",
      "list_models",
    ]);
    for (const { name, annotations } of all) {
      if (reads.includes(name)) continue;
      assert.deepEqual(annotations, { destructiveHint: false, openWorldHint: false }, name);
    }
  });
});

describe("the instructions", () => {
  it("are the same for all but a client that cannot be woken, which is told to wait", () => {
    assert.equal(Buffer.byteLength(instructionsFor("full")), 574);
    assert.equal(instructionsFor("leaf"), instructionsFor("full"));
    const [first, second, ...rest] = instructionsFor("attached").split("\n");
    assert.ok(second?.endsWith("call wait_session before you end your turn."));
    assert.ok(!second?.includes("by itself"));
    const woken = instructionsFor("full").split("\n");
    assert.deepEqual([first, ...rest], [woken[0], ...woken.slice(2)]);
  });
});

/** Returns values that a model may send for an advertised schema. */
function samples(schema: JsonSchema): unknown[] {
  if (schema.enum !== undefined) return [...schema.enum];
  switch (schema.type) {
    case "string":
      return ["text"];
    case "integer":
      return [3];
    case "number":
      return [1.5];
    case "boolean":
      return [true, false];
    case "array":
      return samples(schema.items ?? { type: "string" }).map((item) => [item]);
    case "object": {
      if (schema.additionalProperties !== undefined)
        return [{ any: samples(schema.additionalProperties)[0] }];
      const fields = Object.entries(schema.properties ?? {});
      const whole = Object.fromEntries(fields.map(([name, inner]) => [name, samples(inner)[0]]));
      return [whole, Object.fromEntries((schema.required ?? []).map((name) => [name, whole[name]]))];
    }
  }
}

/** Returns the values of a schema's `enum`, however deep it is nested. */
function choices(schema: unknown): readonly string[] {
  const {
    enum: own,
    anyOf = [],
    items,
  } = schema as {
    enum?: readonly string[];
    anyOf?: readonly unknown[];
    items?: { properties?: Record<string, unknown> };
  };
  const inner = [...anyOf, ...Object.values(items?.properties ?? {})].flatMap(choices);
  return own ?? inner;
}
