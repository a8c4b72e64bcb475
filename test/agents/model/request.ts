export type Api = "anthropic" | "responses" | "completions" | "gemini";

/** One request of an agent, independent of the vendor. Every request contains the whole history. */
export interface ModelRequest {
  readonly model: string;
  readonly isStream: boolean;
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly OfferedTool[];
  /** The JSON schema that the answer must satisfy, if the request demands one. */
  readonly schema: JsonSchema | null;
}

export interface ModelMessage {
  readonly role: "user" | "assistant";
  text: string;
  readonly calls: ToolUse[];
  readonly results: ToolOutput[];
}

export interface ToolUse {
  readonly name: string;
  readonly input: unknown;
}

export interface ToolOutput {
  readonly text: string;
}

export interface OfferedTool {
  readonly name: string;
  /**
   * Only in the Responses API: `bare` is the name within the `namespace`, and `kind` decides the form of a
   * call.
   */
  readonly bare?: string;
  readonly namespace?: string;
  readonly kind?: string;
}

export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly minimum?: number;
}

/** The model's answer, before a `Wire` encodes it. */
export interface ModelAnswer {
  readonly text: string;
  readonly calls: readonly { readonly tool: OfferedTool; readonly input: unknown }[];
}

export interface Wire {
  parse(body: Body, url: URL): ModelRequest;
  /** Returns server-sent events in order, each as its event name or null, and its data. */
  stream(answer: ModelAnswer, model: string): [string | null, unknown][];
  whole(answer: ModelAnswer, model: string): unknown;
  error(status: number, message: string): unknown;
}

export type Body = Readonly<Record<string, unknown>>;

export function message(role: "user" | "assistant", text = ""): ModelMessage {
  return { role, text, calls: [], results: [] };
}

export function list(value: unknown): Body[] {
  return Array.isArray(value) ? (value as Body[]) : [];
}

/** Returns all text of a content field, in any vendor's form. */
export function flat(content: unknown): string {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) return JSON.stringify(content);
  return content
    .map((part: unknown) => {
      const { text, content: inner } = (typeof part === "object" && part ? part : { text: part }) as Body;
      return typeof text === "string" ? text : flat(inner);
    })
    .filter((text) => text !== "")
    .join("\n");
}

export function parsed(text: unknown): unknown {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,24}/g) ?? [];
}

let lastId = 0;

export function newId(prefix: string): string {
  lastId += 1;
  return `${prefix}${process.pid.toString(36)}${lastId.toString(36).padStart(8, "0")}`;
}

export const USED = { input: 100, output: 10 };
