import { z } from "zod";
import { SessionRef } from "../id.ts";
import type { RefusalCode } from "../refusal.ts";
import type { TokenRight } from "../token.ts";

/** One operation, offered on every surface that its row names (`http`, `mcp`, `cli`). */
export interface OperationSpec {
  readonly summary: string;
  readonly input: z.ZodObject;
  readonly output: z.ZodType;
  readonly refusals: readonly RefusalCode[];
  /** Absent for operations that only an agent may call. A `:id` in the path is the input's field `id`. */
  readonly http?: { readonly method: "GET" | "POST" | "PATCH"; readonly path: string };
  /** The tool's name; absent if agents may not call this. */
  readonly mcp?: string;
  readonly cli?: string;
  /** Whether a session may call this; all other operations are for people and API keys. */
  readonly sessions: boolean;
  /** The right that an API key needs to call this; if absent, no key may. */
  readonly right?: TokenRight;
  /** The call may block for as long as its client allows. */
  readonly blocks?: true;
  /** A session that may not spawn has this tool as well. */
  readonly leaf?: true;
  /**
   * Further parameter names of the tool, each mapped to its field: names of the source designs, and fields
   * that are accepted but not advertised. `one.` means a field of the single task or question that a source
   * design passes.
   */
  readonly aliases?: Readonly<Record<string, string>>;
}

export const One = z.strictObject({ id: SessionRef });
export const Page = {
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
};
export const FOUND = ["not_found", "ambiguous_reference", "forbidden"] as const;
