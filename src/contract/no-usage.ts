import type { Usage } from "./session.ts";

/** The usage before any work. It has its own file, so that the daemon can start without the schema files. */
export const NO_USAGE: Readonly<Usage> = Object.freeze({
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  usd: null,
});
