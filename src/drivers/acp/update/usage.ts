import type { PromptResponse } from "@agentclientprotocol/sdk/unstable";
import type { Usage } from "../../../contract/index.ts";
import { isFields } from "../../../text/fields.ts";

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
  const cost = response["_meta"]?.["cost"];
  if (!isFields(cost) || cost["currency"] !== "USD") return null;
  return typeof cost["amount"] === "number" ? cost["amount"] : null;
}

/** Reads the token counts of Gemini, which reports them only here. */
function quotaCount(response: PromptResponse): Omit<Usage, "usd"> | null {
  const quota = response["_meta"]?.["quota"];
  const count = isFields(quota) ? quota["token_count"] : null;
  if (!isFields(count)) return null;
  const number = (...names: string[]): number => {
    const value = names.map((name) => count[name]).find((one) => typeof one === "number");
    return typeof value === "number" ? value : 0;
  };
  return {
    inputTokens: number("input_tokens", "inputTokens"),
    cachedTokens: number("cached_input_tokens", "cachedInputTokens"),
    outputTokens: number("output_tokens", "outputTokens"),
  };
}
