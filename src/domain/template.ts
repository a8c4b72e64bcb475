import { createRequire } from "node:module";
import type Handlebars from "handlebars";
import { oneLine } from "../text/fence.ts";
import { byteLength, bytes, count } from "../text/quantity.ts";

interface Problem {
  readonly ok: false;
  readonly problem: string;
}

/** Never throws and never logs. Always terminates, because templates have no loops. */
export function renderTemplate(
  template: string,
  context: TemplateContext,
): { readonly ok: true; readonly text: string } | Problem {
  const compiled = compiledOf(template);
  if (!compiled.ok) return compiled;
  try {
    const text = compiled.run(context);
    if (byteLength(text) <= outputBytesMax) return { ok: true, text };
    return { ok: false, problem: `it renders more than ${bytes(outputBytesMax)}` };
  } catch (error) {
    return { ok: false, problem: explained(error) };
  }
}

export function templateProblem(template: string): string | null {
  const compiled = compiledOf(template);
  return compiled.ok ? null : compiled.problem;
}

type Compiled = { readonly ok: true; readonly run: (context: TemplateContext) => string } | Problem;

/** Compiled templates. The cache changes the cost of a call, never its result. */
const cache = new Map<string, Compiled>();

function compiledOf(template: string): Compiled {
  const known = cache.get(template);
  if (known !== undefined) return known;
  const compiled = compile(template);
  if (cache.size >= cacheMax) cache.clear();
  cache.set(template, compiled);
  return compiled;
}

function compile(template: unknown): Compiled {
  // Handlebars would also accept a syntax tree instead of a string, and compile it without checks.
  if (typeof template !== "string") return { ok: false, problem: "it is not a string" };
  if (template.length > templateMax)
    return { ok: false, problem: `it is longer than ${templateMax} characters` };
  if (template.split(/\{\{|\(/).length > tagsMax)
    return { ok: false, problem: `it has more than ${tagsMax} tags and brackets` };
  try {
    const environment = handlebars();
    const problem = forbidden(environment.parse(template));
    if (problem !== null) return { ok: false, problem };
    const run = environment.compile<TemplateContext>(template, compileOptions);
    // Handlebars generates code at the first run; running the template here finds errors that appear only
    // then.
    run(emptyContext, runtimeOptions);
    return { ok: true, run: (context) => run(context, runtimeOptions) };
  } catch (error) {
    return { ok: false, problem: explained(error) };
  }
}

/**
 * Returns why a template is refused; null if it has only conditions, fields and `eq`. Loops have no bound,
 * and deep nesting takes seconds to compile.
 */
function forbidden(program: hbs.AST.Program): string | null {
  const nodes: { node: object; depth: number }[] = [{ node: program, depth: 0 }];
  for (let next = nodes.pop(); next !== undefined; next = nodes.pop()) {
    const { node, depth } = next;
    if (depth > depthMax) return "it is nested too deep";
    const problem = forbiddenNode(node as Partial<hbs.AST.BlockStatement>);
    if (problem !== null) return problem;
    for (const [key, value] of Object.entries(node)) {
      if (key !== "loc" && typeof value === "object" && value !== null)
        nodes.push({ node: value, depth: depth + 1 });
    }
  }
  return null;
}

function forbiddenNode(node: Partial<hbs.AST.BlockStatement>): string | null {
  const type = node.type as string | undefined;
  if (type?.startsWith("Partial")) return "partials are not allowed";
  if (type?.startsWith("Decorator")) return "decorators and inline partials are not allowed";
  if (type === "Program" && (node as Partial<hbs.AST.Program>).blockParams !== undefined)
    return "block parameters are not allowed";
  if (type === "PathExpression" && ((node as Partial<hbs.AST.PathExpression>).parts?.length ?? 0) > pathMax)
    return "a path in it is too long";
  if (type !== "MustacheStatement" && type !== "SubExpression" && type !== "BlockStatement") return null;
  const name = String(node.path?.original);
  const given = node.params?.length ?? 0;
  const wanted = (type === "BlockStatement" ? blocks : helpers).get(name);
  if (wanted !== undefined) return given === wanted ? null : `"${name}" takes ${count(wanted, "value")}`;
  const isField = given === 0 && (node.hash?.pairs.length ?? 0) === 0 && type !== "SubExpression";
  if (isField && !builtIn.has(name)) return null;
  const what = type === "BlockStatement" ? "block" : "helper";
  return `the ${what} "${oneLine(name, 40)}" is not known; only if, unless and eq are allowed`;
}

/** Handlebars is loaded with the first template, because it takes longer to load than all of `domain/`. */
let environment: typeof Handlebars | null = null;

function handlebars(): typeof Handlebars {
  if (environment !== null) return environment;
  const load = createRequire(import.meta.url);
  const made = (load("handlebars/dist/handlebars.min.js") as typeof Handlebars).create();
  for (const name of unused) made.unregisterHelper(name);
  made.registerHelper("eq", (...operands: unknown[]) => operands.length === 3 && operands[0] === operands[1]);
  environment = made;
  return made;
}

/** Shortens a parse error of Handlebars from several lines to the position and the unexpected token. */
function explained(error: unknown): string {
  const lines = (error instanceof Error ? error.message : String(error)).split("\n");
  const met = /got '\w+'$/.exec(lines.at(-1) ?? "")?.[0];
  const first = (lines[0] ?? "").replace(/:$/, "");
  return oneLine(lines.length > 1 && met !== undefined ? `${first}, ${met}` : first, 160);
}

const templateMax = 20_000;
const tagsMax = 500;
const depthMax = 100;
const pathMax = 8;
const outputBytesMax = 32 * 1024;
const cacheMax = 32;
const blocks = new Map([
  ["if", 1],
  ["unless", 1],
]);
const helpers = new Map([["eq", 2]]);
const unused = ["each", "with", "lookup", "log"];
const builtIn = new Set([...unused, "if", "unless", "eq", "helperMissing", "blockHelperMissing"]);

const compileOptions = {
  noEscape: true,
  knownHelpersOnly: true,
  knownHelpers: { eq: true, each: false, with: false, lookup: false, log: false },
  data: false,
};

/** With these options Handlebars refuses prototype access silently. By default it also logs the refusal. */
const runtimeOptions = { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false };

const emptyContext = {
  childSessionId: "",
  childSessionFullId: "",
  childTaskId: "",
  childTaskFullId: "",
  parentSessionId: "",
  spawnPrompt: "",
  status: "completed",
  completedAt: "",
  messageCount: 0,
  toolUseCount: 0,
  /** The child's report with its heading. It is fenced and escaped before a template can use it. */
  lastAssistantMessage: "",
  childName: "",
  agent: "",
  duration: "",
  reason: "",
  by: "",
  /** `line` lists what Kinfold observed, `sentence` says the same as a sentence, `notes` may be empty. */
  receipt: { line: "", sentence: "", notes: "" },
  next: "",
};

export type TemplateContext = Readonly<typeof emptyContext>;
