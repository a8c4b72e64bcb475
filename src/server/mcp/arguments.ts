import { Refusal } from "../../contract/refusal.ts";
import { unknownField } from "../input.ts";
import { fields, fold, isRecord, listOf, parsed, renamed } from "./values.ts";
import type { Fields } from "./values.ts";
import { parametersOf } from "./tools.ts";
import type { ToolOperation } from "./tools.ts";

/**
 * A tool's arguments as its operation's input. Keys are matched ignoring case and underscores, the
 * names of the source designs are understood, null means "not given", and anything else is refused
 * with the nearest key.
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
        `"${key}" says again what another parameter said; give one of them.`,
      );
    }
    target[inner ?? head] = convert(field, value);
  }
  if (nested.callback !== undefined) input.callback = { ...callbackOf(input.callback), ...nested.callback };
  if (nested.one !== undefined) input.one = nested.one;
  return (FINISH[operation] ?? same)(input);
}

/** `one.` stands for the single task or question that a source design asks with. */
const ALIASES: Readonly<Record<ToolOperation, Readonly<Record<string, string>>>> = {
  spawn: {
    title: "title",
    key: "key",
    instructions: "instructions",
    tools: "tools",
    node: "node",
    runnerId: "node",
    onParentEnd: "onParentEnd",
    onLimit: "onLimit",
    agenticTool: "agent",
    sessionType: "profile",
    enableCallback: "callback.enabled",
    includeLastMessage: "callback.includeLastMessage",
    includeOriginalPrompt: "callback.includeOriginalPrompt",
    callbackTemplate: "callback.template",
  },
  subagent: {
    task: "one.task",
    prompt: "one.task",
    profile: "one.profile",
    sessionType: "one.profile",
    agent: "one.agent",
    agenticTool: "one.agent",
    chain: "chain",
    parallel: "parallel",
  },
  waitChildren: { sessionId: "one", sessionKey: "one" },
  cancel: { id: "id", sessionKey: "id", turnOnly: "turnOnly" },
  tell: { id: "id", sessionKey: "id", restart: "restart", key: "key" },
  family: { tree: "tree", cursor: "cursor" },
  inspect: { id: "id", sessionKey: "id", turn: "turn", taskId: "turn", turnId: "turn" },
  respond: { id: "id", answers: "answers", key: "key" },
  escalate: { id: "id" },
  fire: { id: "id", sessionKey: "id", source: "source", key: "key" },
  ask: {
    question: "one.question",
    header: "one.header",
    options: "one.options",
    type: "one.type",
    timeoutMs: "timeoutMs",
  },
  planReview: {},
  search: { id: "id", sessionKey: "id", limit: "limit", sort: "sort" },
  checkpoint: {},
  models: {},
};

const FINISH: Partial<Record<ToolOperation, (input: Fields) => Fields>> = {
  waitChildren: withSourceForm,
  subagent: withTasks,
  ask: withQuestions,
};

function same(input: Fields): Fields {
  return input;
}

function acceptedBy(operation: ToolOperation): Map<string, string> {
  const own = [...parametersOf(operation)];
  return new Map([...own, ...Object.entries(ALIASES[operation])].map(([name, field]) => [fold(name), field]));
}

const CALLBACK = fields([
  "enabled",
  "includeLastMessage",
  "includeOriginalPrompt",
  "template",
  "when",
  "batch",
]);
const LIMITS = fields(["usd", "tokens", "turns", "minutes"]);
const STEP = fields(["title", "detail"], { description: "detail" });
const TASK = fields(["task", "profile", "agent"], {
  prompt: "task",
  sessionType: "profile",
  agenticTool: "agent",
});
const QUESTION = fields(["id", "question", "header", "options", "type"], { text: "question" });

/** Values whose shape a model, or a client that writes lists and objects as text, gets almost right. */
function convert(field: string, given: unknown): unknown {
  const value = parsed(field, given);
  switch (field) {
    case "model":
      return isRecord(value) ? [value.provider, value.id].filter(Boolean).join("/") : value;
    case "callback":
      return isRecord(value) ? renamed(value, CALLBACK) : value;
    case "limits":
      return isRecord(value) ? renamed(value, LIMITS) : value;
    case "ids":
    case "entities":
      return listOf(value);
    case "steps":
      return listOf(value).map((step) => (isRecord(step) ? renamed(step, STEP) : step));
    case "tasks":
    case "chain":
    case "parallel":
      return listOf(value).map((task) => (isRecord(task) ? renamed(task, TASK) : { task }));
    case "questions":
      return listOf(value).map((each) => (isRecord(each) ? questionOf(each) : { question: each }));
    default:
      return value;
  }
}

/** The record's own words for how many may be chosen are understood as well as the tool's. */
function questionOf(value: Fields): Fields {
  const { multiple, multiSelect, ranked, ...rest } = value;
  const type = ranked === true ? "ranked" : multiple === true || multiSelect === true ? "checkbox" : null;
  const question = renamed(rest, QUESTION);
  return type === null || question.type !== undefined ? question : { ...question, type };
}

function callbackOf(callback: unknown): Fields {
  if (isRecord(callback)) return callback;
  return typeof callback === "boolean" ? { enabled: callback } : {};
}

/** One session by `session_id` is the source design's call, with its own answers and errors. */
function withSourceForm({ one, ...input }: Fields): Fields {
  if (one === undefined) return input;
  if (input.ids !== undefined) throw new Refusal("invalid_input", "Give ids or session_id, not both.");
  if (Array.isArray(one)) return { ...input, ids: one };
  return { ...input, ids: [one], sourceForm: true };
}

/** One task, `parallel` and `chain` of the source design are all `tasks` with a mode. */
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
