import { Refusal } from "../contract/refusal.ts";
import { unknownField } from "./input.ts";
import { parametersOf } from "./mcp-tools.ts";
import type { ToolOperation } from "./mcp-tools.ts";
import { fold } from "./nearest.ts";

type Fields = Record<string, unknown>;

/**
 * A tool's arguments as its operation's input. Keys are matched ignoring case and underscores, the
 * names of the source designs are understood, null means "not given", and anything else is refused
 * with the nearest key.
 */
export function readArguments(operation: ToolOperation, args: Fields): Fields {
  const accepted = acceptedBy(operation);
  const input: Fields = {};
  const callback: Fields = {};
  for (const [key, value] of Object.entries(args)) {
    const field = accepted.get(fold(key));
    if (field === undefined) throw unknownField(key, namesOf(operation));
    if (value === null || value === undefined) continue;
    const [head = "", inner] = field.split(".");
    const target = inner === undefined ? input : callback;
    if (Object.hasOwn(target, inner ?? head)) {
      throw new Refusal(
        "invalid_input",
        `"${key}" says again what another parameter said; give one of them.`,
      );
    }
    target[inner ?? head] = convert(field, value);
  }
  if (Object.keys(callback).length > 0) input.callback = { ...asObject(input.callback), ...callback };
  return operation === "waitChildren" ? withSourceForm(input) : input;
}

/** Accepted and not advertised, beside the operation's own names. */
const ALIASES: Readonly<Record<ToolOperation, Readonly<Record<string, string>>>> = {
  spawn: {
    title: "title",
    key: "key",
    onParentEnd: "onParentEnd",
    agenticTool: "agent",
    sessionType: "profile",
    enableCallback: "callback.enabled",
    includeLastMessage: "callback.includeLastMessage",
    includeOriginalPrompt: "callback.includeOriginalPrompt",
    callbackTemplate: "callback.template",
  },
  waitChildren: { sessionId: "one", sessionKey: "one" },
  cancel: { id: "id", sessionKey: "id", turnOnly: "turnOnly" },
  tell: { id: "id", sessionKey: "id", restart: "restart", key: "key" },
  family: {},
};

function acceptedBy(operation: ToolOperation): Map<string, string> {
  const own = [...parametersOf(operation)];
  return new Map([...own, ...Object.entries(ALIASES[operation])].map(([name, field]) => [fold(name), field]));
}

function namesOf(operation: ToolOperation): string[] {
  return [...parametersOf(operation).keys()];
}

function convert(field: string, value: unknown): unknown {
  if (field === "model" && isRecord(value)) return [value.provider, value.id].filter(Boolean).join("/");
  if (field === "callback" && isRecord(value)) return withOwnKeys(value);
  if (field === "ids" && typeof value === "string") return [value];
  const isNumber = typeof value === "string" && /^-?\d+$/.test(value);
  if (isNumber && (field === "until" || field === "timeoutMs")) return Number(value);
  return value;
}

const CALLBACK_KEYS = new Map(
  ["enabled", "includeLastMessage", "includeOriginalPrompt", "template", "when", "batch"].map((key) => [
    fold(key),
    key,
  ]),
);

function withOwnKeys(value: Fields): Fields {
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [CALLBACK_KEYS.get(fold(key)) ?? key, item]),
  );
}

function asObject(callback: unknown): Fields {
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

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
