import type { Usage } from "./session.ts";

/** Usage before anything was used. It is in a file of its own, because the daemon starts without the schemas. */
export const NO_USAGE: Readonly<Usage> = Object.freeze({
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  usd: null,
});
