import { setImmediate as letOthersRun } from "node:timers/promises";
import { observe } from "../../domain/receipt.ts";
import type { AgentUpdate } from "../../drivers/port.ts";
import type { EntryRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import type { Recorder } from "../record/recorder.ts";

/** Entries may be long, so they are read in small pages. */
const PAGE = { limit: 500, bytesMax: 1024 * 1024 } as const;

/** Replays a resumed turn's stored entries into its recorder, so that the receipt covers the whole turn. */
export async function replaySeen(deps: EngineDeps, recorder: Recorder): Promise<void> {
  const { turn } = recorder;
  for (let after = turn.entryFrom - 1; ;) {
    const page = await deps.store.read.entries.page(turn.sessionId, { after, ...PAGE });
    for (const entry of page) {
      const update = entry.turnId === turn.id ? updateOf(entry) : null;
      if (update === null) continue;
      observe(recorder.seen, update);
      if (update.kind === "text") recorder.lastText = update.text;
      if (update.kind === "toolCall") recorder.toolUseCount += 1;
    }
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.index;
    await letOthersRun();
  }
}

function updateOf(entry: EntryRecord): AgentUpdate | null {
  const { text, tool = "", callId = "", input, command, paths, steps, exitCode, ok = false } = entry.body;
  if (entry.kind === "plan") return { kind: "plan", steps: steps ?? [] };
  if (entry.kind === "text" && entry.author === "agent") return { kind: "text", text };
  if (entry.kind === "toolCall") {
    return {
      kind: "toolCall",
      callId,
      tool,
      title: text,
      input,
      ...(command === undefined ? {} : { command }),
      ...(paths === undefined ? {} : { paths }),
    };
  }
  if (entry.kind !== "toolResult") return null;
  const ran = command === undefined ? {} : { command, exitCode: exitCode ?? null };
  return { kind: "toolResult", callId, tool, text, ok, ours: false, ...ran };
}
