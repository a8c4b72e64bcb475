import type { PromptResponse } from "@agentclientprotocol/sdk/unstable";
import type { Usage } from "../../../contract/index.ts";
import { fieldsOf, isFields, numberOf } from "../../../text/fields.ts";

/** Returns what a prompt used, from all places where agents report it; null if the agent reports nothing. */
export function usageOf(response: PromptResponse, usdSeen: number | null): Usage | null {
  const usd = costOf(response) ?? usdSeen;
  const usage = response.usage;
  if (usage) {
    return {
      // Tokens written to the cache count as input; only tokens read from it are counted separately.
      inputTokens: usage.inputTokens + (usage.cachedWriteTokens ?? 0),
      cachedTokens: usage.cachedReadTokens ?? 0,
      outputTokens: usage.outputTokens,
      usd,
    };
  }
  const count = quotaCount(response);
  if (count !== null) return { ...count, usd };
  return usd === null ? null : { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd };
}

function costOf(response: PromptResponse): number | null {
  const { currency, amount } = fieldsOf(response["_meta"]?.["cost"]);
  return currency === "USD" && typeof amount === "number" ? amount : null;
}

/** Reads the token counts of Gemini, which reports them only in `_meta`. */
function quotaCount(response: PromptResponse): Omit<Usage, "usd"> | null {
  const count = fieldsOf(response["_meta"]?.["quota"])["token_count"];
  if (!isFields(count)) return null;
  return {
    inputTokens: numberOf(count["input_tokens"] ?? count["inputTokens"]),
    cachedTokens: numberOf(count["cached_input_tokens"] ?? count["cachedInputTokens"]),
    outputTokens: numberOf(count["output_tokens"] ?? count["outputTokens"]),
  };
}
