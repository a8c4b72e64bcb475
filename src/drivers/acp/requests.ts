import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk/unstable";
import type { AgentAnswer, AgentRequest, Risk } from "../port.ts";
import { type Fields, fieldsOf, isFields } from "../../text/fields.ts";
import type { Call, ToolCalls } from "./update/tool-call.ts";

export interface Asking {
  readonly calls: ToolCalls;
  readonly onRequest: (request: AgentRequest) => Promise<AgentAnswer>;
  /** Resolves when the prompt is cancelled, so that the agent does not keep waiting for an answer. */
  readonly cancelled: Promise<void>;
}

export async function answerPermission(
  asking: Asking,
  request: RequestPermissionRequest,
): Promise<RequestPermissionResponse> {
  const call = asking.calls.describe(request.toolCall);
  const plan = planOf(call);
  const answer = await askOrCancel(asking, plan ?? permissionOf(call, request.options));
  if (answer === null) return { outcome: { outcome: "cancelled" } };
  // Approves a plan only once: `allow_always` would give the agent more rights than it had.
  const allowing: PermissionOption["kind"][] =
    plan === null ? ["allow_once", "allow_always"] : ["allow_once"];
  const kinds: PermissionOption["kind"][] =
    answer.kind === "allow" ? allowing : ["reject_once", "reject_always"];
  for (const kind of kinds) {
    const option = request.options.find((one) => one.kind === kind);
    if (option) return { outcome: { outcome: "selected", optionId: option.optionId } };
  }
  return { outcome: { outcome: "cancelled" } };
}

/** Asks all fields of a form together, one question per field. Leaves out fields without an answer. */
export async function answerElicitation(
  asking: Asking,
  request: CreateElicitationRequest,
): Promise<CreateElicitationResponse> {
  const fields =
    request.mode === "form" ? formFields((request as { requestedSchema?: unknown }).requestedSchema) : [];
  if (fields.length === 0) return { action: "decline" };
  const questions = fields.map((field, index) => ({
    id: `q${index + 1}`,
    text: textOf(request.message, field, fields.length),
    options: field.options.map((option) => option.title),
    multiple: field.type === "array",
  }));
  const answer = await askOrCancel(asking, { kind: "question", questions });
  if (answer === null) return { action: "cancel" };
  const content: Record<string, Value> = {};
  for (const [index, field] of fields.entries()) {
    const given = answer.kind === "answer" ? answer.answers[`q${index + 1}`] : undefined;
    if (given !== undefined) Object.assign(content, filled(field, given));
  }
  return Object.keys(content).length === 0 ? { action: "decline" } : { action: "accept", content };
}

/** Returns the plan of an agent that asks to leave its planning mode, as with Claude's ExitPlanMode. */
function planOf(call: Call): AgentRequest | null {
  const { plan } = fieldsOf(call.input);
  if (call.kind !== "switch_mode" || typeof plan !== "string" || plan.trim() === "") return null;
  const lines = plan.split("\n").map((line) => line.replace(/^#+\s*/, "").trim());
  const title = lines.find((line) => line !== "") ?? call.title;
  return { kind: "plan", title: title.slice(0, TITLE_LENGTH), text: plan.trim() };
}

const TITLE_LENGTH = 200;

function permissionOf(call: Call, offered: readonly PermissionOption[]): AgentRequest {
  const { tool, title, paths, ours } = call;
  const risk = call.command === null ? (RISKS[call.kind] ?? "unknown") : "command";
  const command = call.command ?? (risk === "command" ? title : null);
  const options = (offered ?? []).map((option) => String(option.name));
  return { kind: "permission", tool, title, command, paths, risk, options, ours };
}

/** The risk of each of ACP's tool kinds. The risk of any other kind is `unknown`. */
const RISKS: Readonly<Record<string, Risk>> = {
  read: "read",
  search: "read",
  edit: "change",
  delete: "change",
  move: "change",
  execute: "command",
  fetch: "network",
};

async function askOrCancel(asking: Asking, request: AgentRequest): Promise<AgentAnswer | null> {
  // If the request fails, there is no decision, so the agent must not act.
  const answer = asking.onRequest(request).catch((): AgentAnswer => ({ kind: "deny" }));
  return Promise.race([answer, asking.cancelled.then(() => null)]);
}

type Value = string | number | boolean | string[];

interface Field {
  readonly name: string;
  readonly type: string;
  readonly says: string;
  readonly options: readonly { readonly title: string; readonly value: string }[];
  /** The field for a free-text answer, if the form has one. */
  readonly other: string | null;
}

function formFields(schema: unknown): Field[] {
  const properties = fieldsOf(fieldsOf(schema)["properties"]);
  const names = Object.keys(properties);
  const all = names.flatMap((name): Field[] => {
    const property = properties[name];
    if (!isFields(property)) return [];
    const items = isFields(property["items"]) ? property["items"] : null;
    const options = optionsOf(items ?? property);
    const other = options.length === 0 ? null : (names.find((one) => one.startsWith(`${name}_`)) ?? null);
    const says = String(property["description"] ?? (names.length > 2 ? property["title"] : "") ?? "");
    return [{ name, type: String(property["type"] ?? "string"), says, options, other }];
  });
  const others = new Set(all.map((field) => field.other));
  return all.filter((field) => !others.has(field.name));
}

/** Returns a field's question. With a single field, message and description may each have part of it. */
function textOf(message: string, field: Field, count: number): string {
  if (field.says === "" || message.includes(field.says)) return message;
  return count === 1 ? `${message}\n${field.says}` : field.says;
}

type Given = string | readonly string[];

/** Puts an answer that is not among the options into the free-text field, if there is one. */
function filled(field: Field, given: Given): Record<string, Value> {
  const said =
    field.type === "array" ? partsOf(field, given) : [typeof given === "string" ? given : given.join(", ")];
  const free = field.other === null ? [] : said.filter((one) => chosen(field, one) === undefined);
  const picked = said.filter((one) => !free.includes(one));
  return {
    ...(field.other === null || free.length === 0 ? {} : { [field.other]: free.join(", ") }),
    ...(picked.length === 0 ? {} : { [field.name]: valueOf(field, picked) }),
  };
}

/**
 * Several choices come as a list or as one line with commas. A line that matches one option is not split,
 * because an option's title may contain a comma.
 */
function partsOf(field: Field, given: Given): string[] {
  if (typeof given !== "string") return [...given];
  if (chosen(field, given) !== undefined) return [given];
  const parts = given.split(/[,\n]/).map((one) => one.trim());
  return parts.filter((one) => one !== "");
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

function chosen(field: Field, text: string): Field["options"][number] | undefined {
  const wanted = text.trim().toLowerCase();
  return field.options.find((one) => one.title.toLowerCase() === wanted || one.value === text.trim());
}

function valueOf(field: Field, said: readonly string[]): Value {
  const text = said[0] ?? "";
  const value = chosen(field, text)?.value ?? text;
  switch (field.type) {
    case "boolean":
      return value === "true" || text.trim().toLowerCase() === "yes";
    case "integer":
    case "number":
      return Number(value);
    case "array":
      return said.map((one) => chosen(field, one)?.value ?? one.trim());
    default:
      return value;
  }
}
