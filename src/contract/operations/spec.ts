import { z } from "zod";
import { SessionRef } from "../id.ts";
import type { RefusalCode } from "../refusal.ts";
import type { TokenRight } from "../token.ts";

/** One operation. It is offered on each surface whose field is set: `http`, `mcp`, `cli`. */
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
  /** Whether a session may call this. If false, only people and API keys may. */
  readonly sessions: boolean;
  /** The right that an API key needs to call this; if absent, no API key may call it. */
  readonly right?: TokenRight;
  /** The call may wait for something to happen, for as long as its client allows. */
  readonly blocks?: true;
  /** True if sessions that may not spawn have this tool too. */
  readonly leaf?: true;
  /**
   * Maps further parameter names of the tool to input fields. Some are names from the source designs; others
   * are fields that the tool accepts but does not advertise. Some source designs pass a single task or
   * question instead of a list. Their parameters map to `one.<field>`: a field of the list's only item.
   */
  readonly aliases?: Readonly<Record<string, string>>;
}

export const One = z.strictObject({ id: SessionRef });
export const Page = {
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
};
export const FOUND = ["not_found", "ambiguous_reference", "forbidden"] as const;
