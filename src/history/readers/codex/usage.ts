import { asCount, asObject, asText, type JsonObject } from "../../lines/value.ts";
import type { CodexFold, Tokens } from "./notes.ts";

/** Sets the usage: the running total, minus what the session had inherited when it was forked. */
export function foldTokenCount({ facts, notes }: CodexFold, payload: JsonObject): void {
  const info = asObject(payload["info"]);
  const total = tokensOf(info?.["total_token_usage"]);
  if (total === null || notes.hasRecords) return;
  if (notes.copied !== null) notes.base = total;
  if (notes.base === null) {
    const last = tokensOf(info?.["last_token_usage"]);
    notes.base = notes.isFork && last !== null ? less(total, last) : { input: 0, cached: 0, output: 0 };
  }
  const own = less(total, notes.base);
  Object.assign(facts.usage, { inputTokens: own.input, cachedTokens: own.cached, outputTokens: own.output });
}

/** Remembers the running total of a row copied from another session, to subtract it from later totals. */
export function foldCopiedCount({ notes }: CodexFold, payload: JsonObject): void {
  const total = tokensOf(asObject(payload["info"])?.["total_token_usage"]);
  if (total !== null) notes.base = total;
}

/** Newer versions record the usage of each answer. These records replace the running total. */
export function foldTokenRecord({ facts, notes }: CodexFold, payload: JsonObject): void {
  const used = tokensOf(payload["usage"]);
  if (used === null || asText(payload["thread_id"])?.toLowerCase() !== facts.id) return;
  if (!notes.hasRecords) Object.assign(facts.usage, { inputTokens: 0, cachedTokens: 0, outputTokens: 0 });
  notes.hasRecords = true;
  facts.usage.inputTokens += used.input;
  facts.usage.cachedTokens += used.cached;
  facts.usage.outputTokens += used.output;
}

/** Codex counts cached input as part of the input; Kinfold counts the two separately. */
function tokensOf(value: unknown): Tokens | null {
  const fields = asObject(value);
  if (fields === null) return null;
  const cached = asCount(fields["cached_input_tokens"]);
  const input = Math.max(0, asCount(fields["input_tokens"]) - cached);
  return { input, cached, output: asCount(fields["output_tokens"]) };
}

function less(from: Tokens, other: Tokens): Tokens {
  return {
    input: Math.max(0, from.input - other.input),
    cached: Math.max(0, from.cached - other.cached),
    output: Math.max(0, from.output - other.output),
  };
}
