import { boundedValue } from "../../domain/bounded.ts";
import type { AgentUpdate } from "../../drivers/port.ts";
import type { NewEntry } from "../../store/port/store.ts";
import { redactSlowly } from "../../secrets/redact-long.ts";
import { takeSteps } from "../../system/steps.ts";
import { redact } from "../../secrets/redact.ts";
import { boundedText, oneLine } from "../../text/fence.ts";

/** Maximum length of an agent's text outside its messages, such as a tool's result. */
const TEXT_CHARS_MAX = 256 * 1024;
const LINE_CHARS_MAX = 16 * 1024;
const PATHS_MAX = 1_000;
const STEPS_MAX = 1_000;

type Update = Exclude<
  AgentUpdate,
  { kind: "text" | "thought" | "fragment" | "usage" | "modelCall" | "retrying" }
>;

/** Converts an update to an entry within the length limits, and estimates the entry's character count. */
export function entryOfUpdate(
  update: Update,
  of: { turnId: string; at: number },
): { entry: NewEntry; chars: number } {
  const base = { ...of, isSubagent: false };
  switch (update.kind) {
    case "toolCall": {
      const { callId, tool } = update;
      const { value: input, chars } = boundedValue(update.input);
      const command = update.command === undefined ? undefined : boundedText(update.command, TEXT_CHARS_MAX);
      const paths = update.paths?.slice(0, PATHS_MAX).map((each) => boundedText(each, LINE_CHARS_MAX));
      const text = boundedText(update.title, TEXT_CHARS_MAX);
      const body = { text, tool: boundedText(tool, LINE_CHARS_MAX), callId, input, command, paths };
      const all = chars + text.length + (command?.length ?? 0);
      return { entry: { ...base, author: "agent", kind: "toolCall", body }, chars: all };
    }
    case "toolResult": {
      const { callId, ok, exitCode } = update;
      const text = boundedText(update.text, TEXT_CHARS_MAX);
      const command = update.command === undefined ? undefined : boundedText(update.command, TEXT_CHARS_MAX);
      const tool = boundedText(update.tool, LINE_CHARS_MAX);
      const body = { text, tool, callId, ok, exitCode, command };
      const chars = text.length + (command?.length ?? 0);
      return { entry: { ...base, author: "tool", kind: "toolResult", body }, chars };
    }
    case "plan": {
      const steps = update.steps.slice(0, STEPS_MAX).map(({ title, status }) => ({
        title: boundedText(title, LINE_CHARS_MAX),
        status: boundedText(status, LINE_CHARS_MAX),
      }));
      const text = boundedText(steps.map((step) => `- ${step.title}`).join("\n"), TEXT_CHARS_MAX);
      const body = { text, steps };
      return { entry: { ...base, author: "agent", kind: "plan", body }, chars: 2 * text.length };
    }
    case "compaction": {
      const summary = boundedText(update.summary, TEXT_CHARS_MAX);
      const text = "the agent has replaced its conversation so far with a summary";
      const body = { text, input: { summary } };
      return { entry: { ...base, author: "daemon", kind: "notice", body }, chars: summary.length };
    }
    case "notice": {
      const text = boundedText(update.text, TEXT_CHARS_MAX);
      return { entry: { ...base, author: "daemon", kind: "notice", body: { text } }, chars: text.length };
    }
  }
}

/** Redacts the entries. If they are long, lets other work run in between. */
export async function cleanEntries(entries: readonly NewEntry[]): Promise<NewEntry[]> {
  const unclean = entries.filter(({ isClean }) => isClean !== true);
  if (unclean.length === 0) return [...entries];
  const bodies = await takeSteps(redactSlowly(unclean.map(({ body }) => body)));
  const clean = new Map(unclean.map((entry, i) => [entry, { ...entry, body: bodies[i]!, isClean: true }]));
  return entries.map((entry) => clean.get(entry) ?? entry);
}

/** Describes what the agent is doing, as evidence of its status; null if the update does not show it. */
export function activityOf(update: AgentUpdate): string | null {
  switch (update.kind) {
    case "fragment":
      return update.what === "thought" ? "thinking" : "writing";
    case "thought":
      return "thinking";
    case "text":
      return "writing";
    case "toolCall":
      return oneLine(redact((update.command ?? update.title).slice(0, DOING_CHARS_MAX)), 80);
    default:
      return null;
  }
}

const DOING_CHARS_MAX = 2_000;

/** Whether this update shows that the agent is working on its prompt. */
export function isWorking({ kind }: AgentUpdate): boolean {
  return kind !== "usage" && kind !== "notice" && kind !== "compaction";
}

/**
 * Whether the update is a tool call that may spawn a child. The entries that the child inherits must be in
 * the store before the spawn.
 */
export function isPassedOn(update: AgentUpdate): boolean {
  return update.kind === "toolCall" && PASSES_ON.has(update.tool);
}

const PASSES_ON: ReadonlySet<string> = new Set(["spawn_session", "create_session", "subagent"]);
