import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk/unstable";
import type { AgentAnswer, AgentRequest } from "../port.ts";
import { isFields } from "./tool-call.ts";
import type { Call, Fields, ToolCalls } from "./tool-call.ts";

export interface Asking {
  readonly calls: ToolCalls;
  readonly onRequest: (request: AgentRequest) => Promise<AgentAnswer>;
  /** Resolves when the prompt is cancelled: the agent must not wait for an answer any longer. */
  readonly cancelled: Promise<void>;
}

export async function answerPermission(
  asking: Asking,
  request: RequestPermissionRequest,
): Promise<RequestPermissionResponse> {
  const call = asking.calls.describe(request.toolCall);
  const answer = await askOrCancel(asking, permissionOf(call));
  if (answer === null) return { outcome: { outcome: "cancelled" } };
  const kinds: PermissionOption["kind"][] =
    answer.kind === "allow" ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  for (const kind of kinds) {
    const option = request.options.find((one) => one.kind === kind);
    if (option) return { outcome: { outcome: "selected", optionId: option.optionId } };
  }
  return { outcome: { outcome: "cancelled" } };
}

/** A form with one field is a question; anything else cannot be answered with a line of text. */
export async function answerElicitation(
  asking: Asking,
  request: CreateElicitationRequest,
): Promise<CreateElicitationResponse> {
  const field =
    request.mode === "form" ? onlyField((request as { requestedSchema?: unknown }).requestedSchema) : null;
  if (field === null) return { action: "decline" };
  const answer = await askOrCancel(asking, {
    kind: "question",
    text: request.message,
    options: field.options.map((option) => option.title),
  });
  if (answer === null) return { action: "cancel" };
  if (answer.kind !== "answer") return { action: "decline" };
  return { action: "accept", content: { [field.name]: valueOf(field, answer.text) } };
}

function permissionOf(call: Call): AgentRequest {
  const { tool, title, command, paths, ours } = call;
  return { kind: "permission", tool, title, command, paths, ours };
}

async function askOrCancel(asking: Asking, request: AgentRequest): Promise<AgentAnswer | null> {
  return Promise.race([asking.onRequest(request).catch(deny), asking.cancelled.then(() => null)]);
}

function deny(): AgentAnswer {
  return { kind: "deny" };
}

interface Field {
  readonly name: string;
  readonly type: string;
  readonly options: readonly { readonly title: string; readonly value: string }[];
}

function onlyField(schema: unknown): Field | null {
  const properties = isFields(schema) && isFields(schema["properties"]) ? schema["properties"] : {};
  const required = isFields(schema) && Array.isArray(schema["required"]) ? schema["required"] : [];
  const names = required.length > 0 ? required : Object.keys(properties);
  const [name] = names;
  const property = typeof name === "string" ? properties[name] : null;
  if (names.length !== 1 || !isFields(property)) return null;
  const items = isFields(property["items"]) ? property["items"] : null;
  return { name, type: String(property["type"] ?? "string"), options: optionsOf(items ?? property) };
}

function optionsOf(property: Fields): Field["options"] {
  const values = property["enum"];
  if (Array.isArray(values)) return values.map((value) => ({ title: String(value), value: String(value) }));
  const titled = property["oneOf"] ?? property["anyOf"];
  if (Array.isArray(titled)) {
    return titled.filter(isFields).map((one) => {
      const value = String(one["const"]);
      return { title: String(one["title"] ?? value), value };
    });
  }
  return property["type"] === "boolean" ? YES_NO : [];
}

const YES_NO = [
  { title: "yes", value: "true" },
  { title: "no", value: "false" },
];

function valueOf(field: Field, text: string): string | number | boolean | string[] {
  const wanted = text.trim().toLowerCase();
  const chosen = field.options.find((one) => one.title.toLowerCase() === wanted || one.value === text.trim());
  const value = chosen?.value ?? text;
  switch (field.type) {
    case "boolean":
      return value === "true" || wanted === "yes";
    case "integer":
    case "number":
      return Number(value);
    case "array":
      return [value];
    default:
      return value;
  }
}
