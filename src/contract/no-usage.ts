import type { Usage } from "./session.ts";

/** Usage before anything was used. Separate from the schemas: the daemon starts without loading them. */
export const NO_USAGE: Readonly<Usage> = Object.freeze({
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  usd: null,
});
