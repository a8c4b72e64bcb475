import { Config } from "../contract/config.ts";

/** One leaf of the configuration schema. */
export interface Setting {
  readonly key: string;
  readonly env: string;
  readonly kind: "string" | "number" | "boolean" | "list" | "other";
  /** The allowed values, if there are only a few; for the reference documentation. */
  readonly choices: readonly string[] | null;
  readonly description: string;
  readonly fallback: unknown;
  /** `narrow`: a project's file may only make the setting stricter. `none`: the file may not set it. */
  readonly project: "narrow" | "none";
  /** Returns what is wrong with a value, or null. */
  check(value: unknown): string | null;
}

/** The part of a zod schema that is used here. Declared here, because this folder may not import zod. */
interface Schema {
  readonly def: { readonly type: string; readonly innerType?: Schema; readonly defaultValue?: unknown };
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly options?: readonly string[];
  readonly description?: string | undefined;
  safeParse(value: unknown): {
    readonly success: boolean;
    readonly error?: {
      readonly issues: readonly { readonly path: PropertyKey[]; readonly message: string }[];
    };
  };
}

/** Limits of the whole machine. A project's file may not set them. */
const OF_THE_NODE = new Set(["limits.turnsMax", "limits.processesMax"]);

/** All settings, in the order of the schema. */
export const SETTINGS: readonly Setting[] = leaves(Config as unknown as Schema, "");

const byKey = new Map(SETTINGS.map((setting) => [setting.key, setting]));
const sections = new Set(
  SETTINGS.flatMap(({ key }) => (key.includes(".") ? [key.slice(0, key.indexOf("."))] : [])),
);

export function settingOf(key: string): Setting | undefined {
  return byKey.get(key);
}

/** True if a key names a group of settings, such as `limits`. */
export function isSection(key: string): boolean {
  return sections.has(key);
}

function leaves(schema: Schema, prefix: string): Setting[] {
  return Object.entries(bare(schema).shape ?? {}).flatMap(([name, child]) => {
    const key = prefix + name;
    return bare(child).def.type === "object" ? leaves(child, `${key}.`) : [leaf(key, child)];
  });
}

function leaf(key: string, schema: Schema): Setting {
  return {
    key,
    env: `KINFOLD_${key.replaceAll(".", "_").replaceAll(/[A-Z]/g, "_$&").toUpperCase()}`,
    kind: kindOf(bare(schema).def.type),
    choices: bare(schema).options ?? null,
    description: schema.description ?? "",
    fallback: schema.def.type === "default" ? schema.def.defaultValue : null,
    project: projectRight(key),
    check: (value) => complaint(schema, value),
  };
}

/**
 * Anyone may have written a project's file, because it comes with a clone. So it may only restrict what
 * sessions in its folders may do.
 */
function projectRight(key: string): Setting["project"] {
  if (key === "permission") return "narrow";
  return key.startsWith("limits.") && !OF_THE_NODE.has(key) ? "narrow" : "none";
}

function complaint(schema: Schema, value: unknown): string | null {
  if (value === null && !schema.safeParse(null).success) return "is empty";
  const issues = schema.safeParse(value).error?.issues ?? [];
  if (issues.length === 0) return null;
  return `is not valid: ${issues.map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": ")).join("; ")}`;
}

function bare(schema: Schema): Schema {
  return schema.def.innerType === undefined ? schema : bare(schema.def.innerType);
}

function kindOf(type: string): Setting["kind"] {
  switch (type) {
    case "string":
    case "enum":
      return "string";
    case "number":
    case "boolean":
      return type;
    case "array":
      return "list";
    default:
      return "other";
  }
}
