import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { renderTemplate, templateProblem } from "./template.ts";
import type { TemplateContext } from "./template.ts";
import { checkProperty } from "../testing/seeds.ts";

test("a template renders fields, conditions and eq, and escapes no HTML", () => {
  const template =
    "{{#if (eq status 'failed')}}F{{else}}C{{/if}} {{childName}} {{receipt.line}}{{#unless by}}.{{/unless}}";
  assert.deepEqual(renderTemplate(template, context), { ok: true, text: 'F "a" <b> 1 tool call.' });
});

test("a field that does not exist renders nothing", () => {
  assert.deepEqual(renderTemplate("[{{nothing}}{{receipt.nothing.at.all}}]", context), {
    ok: true,
    text: "[]",
  });
});

for (const [what, template, problem] of [
  ["does not parse", "{{#if", /^Parse error on line 1/],
  ["uses a helper that is not known", "{{shout childName}}", /the helper "shout" is not known/],
  ["uses a block that is not known", "{{#repeat 3}}x{{/repeat}}", /the block "repeat" is not known/],
  ["hides an unknown helper in an argument", "{{#if (eq (shout a) 1)}}x{{/if}}", /"shout" is not known/],
  [
    "hides an unknown block in an else",
    "{{#if a}}{{else}}{{#each b}}x{{/each}}{{/if}}",
    /"each" is not known/,
  ],
  ["loops", "{{#each receipt}}x{{/each}}", /"each" is not known/],
  ["changes the context", "{{#with receipt}}x{{/with}}", /"with" is not known/],
  ["logs", "{{log 'x'}}", /"log" is not known/],
  ["looks things up", "{{lookup receipt 'constructor'}}", /"lookup" is not known/],
  ["names Handlebars' own hooks", "{{helperMissing}}", /"helperMissing" is not known/],
  ["uses a partial", "{{> other}}", /partials are not allowed/],
  ["uses a partial block", "{{#> other}}x{{/other}}", /partials are not allowed/],
  ["defines a partial", '{{#*inline "x"}}y{{/inline}}', /inline partials are not allowed/],
  ["uses a decorator", "{{* x}}", /decorators/],
  ["uses block parameters", "{{#if a as |b|}}x{{/if}}", /block parameters are not allowed/],
  ["gives eq one value", "{{#if (eq a)}}x{{/if}}", /"eq" takes 2 values/],
  [
    "gives if nothing, where it would only show later",
    "{{#if a}}{{#if}}x{{/if}}{{/if}}",
    /"if" takes 1 value/,
  ],
  ["is nested too deep", "{{#if a}}".repeat(100) + "{{/if}}".repeat(100), /nested too deep/],
  ["has too many tags", "{{a}}".repeat(1000), /more than 500 tags/],
  ["has a path without end", `{{${"a.".repeat(5000)}a}}`, /path in it is too long/],
  ["is too long", "x".repeat(20_001), /longer than 20000/],
] as const) {
  test(`a template is refused if it ${what}`, () => {
    assert.match(templateProblem(template) ?? "", problem);
    assert.equal(renderTemplate(template, context).ok, false);
  });
}

test("a syntax tree is not a template", () => {
  const tree = { type: "Program", body: [] } as unknown as string;
  assert.equal(templateProblem(tree), "it is not a string");
});

test("a template reaches nothing through a prototype, and says nothing on the console", (t) => {
  const said = (["error", "warn", "log", "info"] as const).map((name) =>
    t.mock.method(console, name, () => {}),
  );
  const template =
    "{{constructor}}{{receipt.constructor.name}}{{__proto__}}{{childName.toString}}{{valueOf}}";
  assert.deepEqual(renderTemplate(template, context), { ok: true, text: "" });
  assert.deepEqual(
    said.map((one) => one.mock.callCount()),
    [0, 0, 0, 0],
  );
});

test("a template that renders more than 32 KB is broken", () => {
  const long = { ...context, lastAssistantMessage: "x".repeat(4096) };
  assert.equal(templateProblem("{{lastAssistantMessage}}".repeat(20)), null);
  assert.deepEqual(renderTemplate("{{lastAssistantMessage}}".repeat(20), long), {
    ok: false,
    problem: "it renders more than 32 KB",
  });
});

test("what a field holds is never itself a template", () => {
  const rendered = renderTemplate("{{childName}}", { ...context, childName: "{{reason}}{{#if}}" });
  assert.deepEqual(rendered, { ok: true, text: "{{reason}}{{#if}}" });
});

test("a template renders the same whether or not it was forgotten in between", () => {
  const before = renderTemplate("{{status}}!", context);
  for (let i = 0; i < 100; i += 1) templateProblem(`{{status}}${i}`);
  assert.deepEqual(renderTemplate("{{status}}!", context), before);
});

test("no template throws", () => {
  const part = fc.constantFrom(
    ..."{{|}}|{{{|}}}|{{#if |{{/if}}|{{else}}|{{#unless a}}|{{/unless}}|(eq |)|a|'x'|.|../|@root|@|this|1|[|]|".split(
      "|",
    ),
    ..."as \\|b\\||{{> x}}|{{!--|--}}|{{^|~|&|\\|\n| |=|{{{{a}}}}|{{{{/a}}}}|constructor|__proto__|\u0000".split(
      "|",
    ),
  );
  checkProperty(
    import.meta.filename,
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      const template = parts.join("");
      const problem = templateProblem(template);
      const rendered = renderTemplate(template, context);
      assert.equal(rendered.ok, problem === null);
      assert.doesNotMatch(problem ?? "x", /^$|\n/);
    }),
    { numRuns: 2000 },
  );
});

const context: TemplateContext = {
  childSessionId: "4f2a91c0",
  childSessionFullId: "0190-4f2a91c0",
  childTaskId: "t1",
  childTaskFullId: "0190-t1",
  parentSessionId: "p1",
  spawnPrompt: "",
  status: "failed",
  completedAt: "2026-11-15T14:02:00.000Z",
  messageCount: 2,
  toolUseCount: 1,
  lastAssistantMessage: "",
  childName: '"a" <b>',
  agent: "codex",
  duration: "1 s",
  reason: "",
  by: "",
  receipt: { line: "1 tool call", sentence: "Seen by Kinfold: 1 tool call.", notes: "" },
  next: "",
};
