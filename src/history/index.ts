import { claudeCode } from "./readers/claude-code/index.ts";
import { codex } from "./readers/codex/index.ts";
import { gemini } from "./readers/gemini/index.ts";
import { opencode } from "./readers/opencode/index.ts";
import type { HistoryReader } from "./port.ts";

export const historyReaders: readonly HistoryReader[] = [claudeCode, codex, opencode, gemini];
