import { Refusal } from "../../contract/refusal.ts";
import { unknownField } from "../input.ts";
import { ALIAS_WORDS, Budget, CallbackPatch, OPERATIONS, TOOL_WORDS } from "../../contract/index.ts";
import type { OperationName, OperationSpec, ToolWords } from "../../contract/index.ts";
import { isWithinShape } from "../body.ts";

/**
 * Turns a tool's arguments into its operation's input. Ignores case and underscores in keys, accepts the
 * names of the source designs, and treats null as "not given". Refuses unknown keys.
 */
export function readArguments(operation: ToolOperation, args: Fields): Fields {
  const accepted = acceptedBy(operation);
  const input: Fields = {};
  const nested: Record<string, Fields> = {};
  for (const [key, value] of Object.entries(args)) {
    const field = accepted.get(fold(key));
    if (field === undefined) throw unknownField(key, [...parametersOf(operation).keys()]);
    if (value === null || value === undefined) continue;
    const [head = "", inner] = field.split(".");
    const target = inner === undefined ? input : (nested[head] ??= {});
    if (Object.hasOwn(target, inner ?? head)) {
      throw new Refusal(
        "invalid_input",
        `"${key}" sets the same field as another parameter; give only one of them.`,
      );
    }
    target[inner ?? head] = convert(field, value);
  }
  if (nested.callback !== undefined) input.callback = { ...callbackOf(input.callback), ...nested.callback };
  if (nested.one !== undefined) input.one = nested.one;
  return finished(operation, input);
}

/** Converts the forms in which the source designs pass one task, one question or one session. */
function finished(operation: ToolOperation, input: Fields): Fields {
  switch (operation) {
    case "waitChildren":
      return withSourceForm(input);
    case "subagent":
      return withTasks(input);
    case "ask":
      return withQuestions(input);
    default:
      return input;
  }
}

function acceptedBy(operation: ToolOperation): Map<string, string> {
  const own = [...parametersOf(operation)];
  const { aliases = {} }: OperationSpec = OPERATIONS[operation];
  return new Map([...own, ...Object.entries(aliases)].map(([name, field]) => [fold(name), field]));
}

const CALLBACK = fields(Object.keys(CallbackPatch.shape));
const LIMITS = fields(Object.keys(Budget.shape));
const STEP = fields(["title", "detail"], { description: "detail" });
const TASK = fields(["task", "profile", "agent"], {
  prompt: "task",
  sessionType: "profile",
  agenticTool: "agent",
});
const QUESTION = fields(["id", "question", "header", "options", "type"], { text: "question" });

/** Corrects values that are almost right; some clients write lists and objects as text. */
function convert(field: string, given: unknown): unknown {
  const value = parsed(field, given);
  switch (field) {
    case "model":
      return isFields(value) ? [value.provider, value.id].filter(Boolean).join("/") : value;
    case "callback":
      return isFields(value) ? renamed(value, CALLBACK) : value;
    case "limits":
      return isFields(value) ? renamed(value, LIMITS) : value;
    case "ids":
    case "entities":
      return listOf(value);
    case "steps":
      return listOf(value).map((step) => (isFields(step) ? renamed(step, STEP) : step));
    case "tasks":
    case "chain":
    case "parallel":
      return listOf(value).map((task) => (isFields(task) ? renamed(task, TASK) : { task }));
    case "questions":
      return listOf(value).map((each) => (isFields(each) ? questionOf(each) : { question: each }));
    default:
      return value;
  }
}

/** Understands `multiple`, `multiSelect` and `ranked` as well as the tool's own `type`. */
function questionOf(value: Fields): Fields {
  const { multiple, multiSelect, ranked, ...rest } = value;
  const type = ranked === true ? "ranked" : multiple === true || multiSelect === true ? "checkbox" : null;
  const question = renamed(rest, QUESTION);
  return type === null || question.type !== undefined ? question : { ...question, type };
}

function callbackOf(callback: unknown): Fields {
  if (isFields(callback)) return callback;
  return typeof callback === "boolean" ? { enabled: callback } : {};
}

/** Turns a single `session_id` into `ids`, marked as the source design's form, which has its own replies. */
function withSourceForm({ one, ...input }: Fields): Fields {
  if (one === undefined) return input;
  if (input.ids !== undefined) throw new Refusal("invalid_input", "Give ids or session_id, not both.");
  if (Array.isArray(one)) return { ...input, ids: one };
  return { ...input, ids: [one], sourceForm: true };
}

/** Converts the source design's single task, `parallel` and `chain` into `tasks` with a mode. */
function withTasks({ one, chain, parallel, ...input }: Fields): Fields {
  const given = [one, chain, parallel, input.tasks].filter((each) => each !== undefined);
  if (given.length > 1) throw new Refusal("invalid_input", "Give the tasks once: as tasks, with a mode.");
  if (one !== undefined) return { ...input, tasks: [one] };
  if (chain !== undefined) return { ...input, tasks: chain, mode: "chain" };
  return parallel === undefined ? input : { ...input, tasks: parallel, mode: "parallel" };
}

function withQuestions({ one, ...input }: Fields): Fields {
  if (one === undefined) return input;
  if (input.questions !== undefined)
    throw new Refusal("invalid_input", "Give question or questions, not both.");
  return { ...input, questions: [one] };
}

export type ToolOperation = {
  [N in OperationName]: (typeof OPERATIONS)[N] extends { readonly mcp: string } ? N : never;
}[OperationName];

export const TOOL_NAMES: readonly string[] = TOOL_WORDS.map(({ name }) => name);

export function operationOf(toolName: string): ToolOperation | null {
  const name = isAlias(toolName) ? OPERATIONS.spawn.mcp : toolName;
  const rows = Object.entries(OPERATIONS) as [ToolOperation, OperationSpec][];
  return rows.find(([, { mcp }]) => mcp === name)?.[0] ?? null;
}

export function mayBlock(toolName: string): boolean {
  const operation = operationOf(toolName);
  const row: OperationSpec | null = operation === null ? null : OPERATIONS[operation];
  return row?.blocks === true;
}

/** Whether this is the source design's name for a spawn. A child spawned by that name inherits nothing. */
export function isAlias(toolName: string): boolean {
  return toolName === ALIAS_WORDS.name;
}

/** Maps the tool's parameter names to the operation's fields. */
export function parametersOf(operation: ToolOperation): ReadonlyMap<string, string> {
  const words: ToolWords | undefined = TOOL_WORDS.find(({ name }) => name === OPERATIONS[operation].mcp);
  return new Map(Object.keys(words?.parameters ?? {}).map((name) => [name, words?.fields?.[name] ?? name]));
}

type Fields = Record<string, unknown>;

/** Maps each accepted name, in the form that `fold` returns, to its field. */
type Names = ReadonlyMap<string, string>;

function fields(own: readonly string[], aliases: Readonly<Record<string, string>> = {}): Names {
  const rows = [...own.map((name) => [name, name] as const), ...Object.entries(aliases)];
  return new Map(rows.map(([name, field]) => [fold(name), field]));
}

/** Returns the same text for keys that differ only in case and underscores. */
function fold(key: string): string {
  return key.toLowerCase().replaceAll("_", "");
}

/** Renames an object's keys to their fields' names. Keeps unknown keys, for the contract to refuse. */
function renamed(value: Fields, names: Names): Fields {
  const given = Object.entries(value).filter(([, item]) => item !== null && item !== undefined);
  return Object.fromEntries(given.map(([key, item]) => [names.get(fold(key)) ?? key, item]));
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

const NUMBERS = new Set(["until", "timeoutMs", "limit"]);
const STRUCTURES = new Set([
  "ids",
  "tasks",
  "chain",
  "parallel",
  "questions",
  "options",
  "one.options",
  "steps",
  "entities",
  "constraints",
  "payload",
  "limits",
  "answers",
  "tools",
]);

/** Parses numbers, lists and objects that some clients write as text. */
function parsed(field: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (NUMBERS.has(field)) return /^-?\d+$/.test(value) ? Number(value) : value;
  if (!STRUCTURES.has(field) || !/^\s*[[{]/.test(value) || !isWithinShape(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
