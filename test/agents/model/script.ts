import type { JsonSchema, ModelAnswer, ModelMessage, ModelRequest, OfferedTool } from "./request.ts";

/**
 * One rule of the scripted model. The model keeps no state, because every request contains the whole history.
 * The newest user message that matches a rule selects the rule, and the messages after it select the step. So
 * any number of parents and children may use one model at once.
 */
export interface Rule {
  readonly name: string;
  readonly on: RegExp;
  /** Values to take from the matched message. Each name gets the first group of its expression. */
  readonly capture?: Readonly<Record<string, RegExp>>;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly say?: string;
  readonly call?: ScriptedCall;
  /** Values to take from the results of this step's call. Each name gets its expression's first group. */
  readonly capture?: Readonly<Record<string, RegExp>>;
  /** Repeats the step until the results match. */
  readonly until?: RegExp;
  readonly delayMs?: number;
  /** Starts the answer and never ends it. */
  readonly hang?: boolean;
  /** Closes the connection in the middle of the answer: always, or the given number of times. */
  readonly cut?: { readonly times?: number };
  readonly error?: { readonly status: number; readonly message: string; readonly times?: number };
}

export interface ScriptedCall {
  /**
   * The tool's name or the end of its name, because vendors add different prefixes. If there are several
   * names, the first one that the request offers is called.
   */
  readonly tool: string | readonly string[];
  /** `${name}` in a string is replaced by the captured value, `${result}` by the last results. */
  readonly input?: Readonly<Record<string, unknown>> | string;
}

export interface Decision {
  readonly rule: string;
  readonly step: number;
  readonly answer: ModelAnswer;
  readonly how: Pick<Step, "delayMs" | "hang" | "cut" | "error">;
}

export function decide(rules: readonly Rule[], request: ModelRequest): Decision {
  const isSide = request.tools.length === 0;
  if (isSide) return plain("(side)", JSON.stringify(smallest(request.schema ?? { type: "string" })));
  const found = newestMatch(rules, request.messages);
  if (found === null) return plain("(none)", "no rule fits");
  const { rule, at } = found;
  const values: Values = {};
  take(rule.capture, request.messages[at]?.text ?? "", values);
  const index = replay(rule, request.messages.slice(at + 1), values);
  const step = rule.steps[index] ?? { say: `rule ${rule.name} has no step ${index}` };
  return { rule: rule.name, step: index, answer: render(step, values, request), how: step };
}

function plain(rule: string, text: string): Decision {
  return { rule, step: 0, answer: { text, calls: [] }, how: {} };
}

function newestMatch(
  rules: readonly Rule[],
  messages: readonly ModelMessage[],
): { rule: Rule; at: number } | null {
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const { role, text } = messages[at] as ModelMessage;
    if (role === "assistant" || text === "") continue;
    const rule = rules.find((one) => one.on.test(text));
    if (rule !== undefined) return { rule, at };
  }
  return null;
}

type Values = Record<string, string>;

/**
 * Replays the history. Each message of the assistant is one step; the tool results before the next such
 * message belong to that step.
 */
function replay(rule: Rule, after: readonly ModelMessage[], values: Values): number {
  let step = 0;
  for (const [index, one] of after.entries()) {
    if (one.role !== "assistant" || (isSearch(one) && !isScripted(rule.steps[step]))) continue;
    const next = after.findIndex((other, place) => place > index && other.role === "assistant");
    const results = after
      .slice(index, next < 0 ? undefined : next)
      .flatMap((other) => other.results.map((result) => result.text))
      .join("\n");
    if (results !== "") values["result"] = results;
    const played = rule.steps[step];
    take(played?.capture, results, values);
    if (played?.until === undefined || played.until.test(results)) step += 1;
  }
  return step;
}

function take(wanted: Rule["capture"], text: string, values: Values): void {
  for (const [name, pattern] of Object.entries(wanted ?? {})) {
    const match = pattern.exec(text);
    if (match) values[name] = match[1] ?? match[0];
  }
}

function render(step: Step, values: Values, request: ModelRequest): ModelAnswer {
  const text = fill(step.say ?? "", values) as string;
  if (step.call === undefined) return { text, calls: [] };
  const wanted = [step.call.tool].flat();
  const tool = wanted.map((name) => findTool(request.tools, name)).find((one) => one !== undefined);
  if (tool !== undefined) return { text, calls: [{ tool, input: fill(step.call.input ?? {}, values) }] };
  const search = searchFor(wanted[0] ?? "", request);
  if (search !== null) return { text: "", calls: [search] };
  const offered = request.tools.map((one) => one.name).join(", ");
  return { text: `SCRIPT ERROR: no tool ends in ${wanted.join(" or ")}; offered: ${offered}`, calls: [] };
}

function findTool(tools: readonly OfferedTool[], name: string): OfferedTool | undefined {
  return tools.find((tool) => tool.name === name) ?? tools.find((tool) => tool.name.endsWith(name));
}

const SEARCH = /^(?:ToolSearch|tool_search|tool_search_call)$/;

/** A search for a deferred tool is not a step of the script. */
function isSearch(one: ModelMessage): boolean {
  return one.calls.length > 0 && one.calls.every((call) => SEARCH.test(call.name));
}

function isScripted(step: Step | undefined): boolean {
  return [step?.call?.tool ?? []].flat().some((name) => SEARCH.test(name));
}

function searchFor(wanted: string, request: ModelRequest): ModelAnswer["calls"][number] | null {
  const tool = request.tools.find((one) => SEARCH.test(one.name) || one.kind === "tool_search");
  const tried = request.messages.slice(-4).filter(isSearch).length;
  if (tool === undefined || tried > 1) return null;
  const names = request.messages.flatMap((one) => one.text.match(/^\S+$/gm) ?? []);
  const full = names.find((name) => name.endsWith(wanted));
  if (tool.name === "ToolSearch")
    return { tool, input: { query: `select:${full ?? wanted}`, max_results: 5 } };
  return { tool, input: { query: wanted, limit: 8 } };
}

function fill(value: unknown, values: Values): unknown {
  if (typeof value === "string")
    return value.replaceAll(/\$\{(\w+)\}/g, (all, name: string) => values[name] ?? all);
  if (Array.isArray(value)) return value.map((one) => fill(one, values));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fill(one, values)]));
}

/** Returns the smallest value that a schema allows, for side requests such as titles and routing. */
function smallest(schema: JsonSchema): unknown {
  if (schema.enum) return schema.enum[0];
  if (schema.const !== undefined) return schema.const;
  const [first] = schema.anyOf ?? schema.oneOf ?? [];
  if (first) return smallest(first);
  const type = String([schema.type ?? "object"].flat()[0]).toLowerCase();
  if (type === "array") return [];
  if (type === "string") return "scripted";
  if (type === "boolean") return false;
  if (type === "null") return null;
  if (type !== "object") return schema.minimum ?? 1;
  const names = schema.required ?? Object.keys(schema.properties ?? {});
  return Object.fromEntries(names.map((name) => [name, smallest(schema.properties?.[name] ?? {})]));
}
