import { z } from "zod";
import { SessionRef } from "../id.ts";
import type { RefusalCode } from "../refusal.ts";
import type { TokenRight } from "../token.ts";

/** One thing a caller may ask, defined once, offered on every surface that it names. */
export interface OperationSpec {
  readonly summary: string;
  readonly input: z.ZodObject;
  readonly output: z.ZodType;
  readonly refusals: readonly RefusalCode[];
  /** Absent for operations that only an agent may call. A `:id` in the path is the input's field `id`. */
  readonly http?: { readonly method: "GET" | "POST" | "PATCH"; readonly path: string };
  /** The tool's name; absent if agents may not call this. */
  readonly mcp?: string;
  /** The CLI command that calls this. */
  readonly cli?: string;
  /** Whether a session's token may call this over HTTP as well. */
  readonly sessions: boolean;
  /** The right that an API key needs to call this; if absent, no key may. */
  readonly right?: TokenRight;
  /** The tool may take as long as its client allows. */
  readonly blocks?: true;
  /**
   * Other names for the tool's parameters, each mapped to its field: names from the source designs, and
   * fields that are accepted but not advertised. `one.` marks a field of the single task or question in a
   * source design.
   */
  readonly aliases?: Readonly<Record<string, string>>;
}

/** Schemas that many operations share. */
export const One = z.strictObject({ id: SessionRef });
export const Page = {
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
};
export const FOUND = ["not_found", "ambiguous_reference", "forbidden"] as const;
