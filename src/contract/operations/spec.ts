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
  /** Absent where only an agent may ask. A `:id` in the path is the input's field `id`. */
  readonly http?: { readonly method: "GET" | "POST" | "PATCH"; readonly path: string };
  /** The name of the tool, where an agent may ask. */
  readonly mcp?: string;
  /** The CLI command that asks this. */
  readonly cli?: string;
  /** A session's own token may ask this over HTTP as well. */
  readonly sessions: boolean;
  /** What an API key must be allowed to ask this; without it no key may. */
  readonly right?: TokenRight;
  /** The tool may take as long as its client lets it. */
  readonly blocks?: true;
  /**
   * Further names of the tool's parameters, each with its field: those of the source designs, and fields that are
   * accepted without being advertised. `one.` is a field of the single task or question that a source design asks with.
   */
  readonly aliases?: Readonly<Record<string, string>>;
}

/** What many rows share. */
export const One = z.strictObject({ id: SessionRef });
export const Page = {
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
};
export const FOUND = ["not_found", "ambiguous_reference", "forbidden"] as const;
