import { z } from "zod";

export interface Field {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly fallback: string;
  readonly description: string;
}

interface Json {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Json[];
  readonly oneOf?: readonly Json[];
  readonly items?: Json;
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly description?: string;
}

export function fieldsOf(schema: z.ZodType, io: "input" | "output"): Field[] {
  const made = z.toJSONSchema(schema, { io }) as Json;
  return Object.entries(made.properties ?? {}).map(([name, field]) => ({
    name,
    type: typeOf(field),
    required: made.required?.includes(name) ?? false,
    fallback: field.default === undefined ? "" : JSON.stringify(field.default),
    description: field.description ?? "",
  }));
}

/** Returns a short name for a type. Nested records are spelled out one level deep. */
export function typeOf(schema: Json, depth = 0): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return [...new Set(choices.map((choice) => typeOf(choice, depth)))].join(" | ");
  if (Array.isArray(schema.type)) return schema.type.join(" | ");
  if (schema.type === "array") return `[${typeOf(schema.items ?? {}, depth)}]`;
  if (schema.type !== "object") return (schema.type as string | undefined) ?? "anything";
  const names = Object.keys(schema.properties ?? {});
  return names.length === 0 || depth > 0 ? "object" : `{ ${names.join(", ")} }`;
}
