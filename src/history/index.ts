import { claudeCode } from "./claude-code/index.ts";
import { codex } from "./codex/index.ts";
import { gemini } from "./gemini/index.ts";
import { opencode } from "./opencode/index.ts";
import type { HistoryReader } from "./port.ts";

/** Every reader there is, one for each format. */
export const historyReaders: readonly HistoryReader[] = [claudeCode, codex, opencode, gemini];
