import type { Receipt, Usage } from "../contract/index.ts";
import { redact } from "../secrets/redact.ts";
import { oneLine, shortLine, visible } from "../text/fence.ts";
import { count, duration, tokens } from "../text/quantity.ts";
import { NO_USAGE } from "../contract/no-usage.ts";

export type FileChange = Readonly<Receipt["filesChanged"][number]>;

/** The part of a driver's updates that `observe` needs. The port's `AgentUpdate` fits this type. */
export type AgentUpdateLike =
  | {
      readonly kind: "toolCall";
      readonly callId: string;
      readonly tool: string;
      readonly title: string;
      readonly command?: string;
      readonly paths?: readonly string[];
    }
  | {
      readonly kind: "toolResult";
      readonly callId: string;
      readonly tool: string;
      readonly ok: boolean;
      readonly command?: string;
      readonly exitCode?: number | null;
      readonly files?: readonly FileChange[];
    }
  | { readonly kind: "plan"; readonly steps: readonly { title: string; status: string }[] }
  | { readonly kind: Unseen };

type Unseen = "fragment" | "text" | "thought" | "compaction" | "usage" | "modelCall" | "retrying" | "notice";

/** Everything that a turn was seen to do so far. Code that denies a request adds the request to `denied`. */
export interface Seen {
  toolCalls: { name: string; ok: boolean }[];
  commands: { command: string; exitCode: number | null }[];
  files: FileChange[];
  denied: string[];
  /** The last tool call, in words for people: the call's title, or the tool's name if it has none. */
  lastTool: string | null;
  lastToolHasResult: boolean;
  /** For each call id of the agent: the indexes of that call in `toolCalls` and in `commands`. */
  places: Map<string, { call: number; command: number | null }>;
  lastCallId: string | null;
  plan: readonly { title: string; status: string }[] | null;
  /** How often the turn's calls named each file. */
  touched: Map<string, number>;
}

export function emptySeen(): Seen {
  return {
    toolCalls: [],
    commands: [],
    files: [],
    denied: [],
    lastTool: null,
    lastToolHasResult: false,
    places: new Map(),
    lastCallId: null,
    plan: null,
    touched: new Map(),
  };
}

/**
 * Changes `seen` in place. A call that is announced several times counts once; only its result can make it
 * `ok`.
 */
export function observe(seen: Seen, update: AgentUpdateLike): Seen {
  if (update.kind === "toolCall") {
    const place = placeOf(seen, update);
    noteCommand(seen, place, { command: update.command });
    seen.lastTool = clipped(update.title.trim() === "" ? update.tool : update.title, nameMax);
    if (seen.lastCallId !== update.callId) seen.lastToolHasResult = false;
    seen.lastCallId = update.callId;
    for (const path of update.paths ?? []) seen.touched.set(path, (seen.touched.get(path) ?? 0) + 1);
  }
  if (update.kind === "plan") seen.plan = update.steps;
  if (update.kind === "toolResult") {
    const place = placeOf(seen, update);
    const call = seen.toolCalls[place.call];
    if (call !== undefined) call.ok = update.ok;
    noteCommand(seen, place, update);
    if (update.files !== undefined && update.files.length > 0)
      seen.files = mergeFiles([...seen.files, ...update.files]);
    if (seen.lastCallId === update.callId) seen.lastToolHasResult = true;
  }
  return seen;
}

export function receiptOf(
  seen: Seen,
  more: { turns: number; durationMs: number; usage: Usage; stopReason: string | null },
): Receipt {
  return {
    turns: more.turns,
    toolCalls: groupCalls(seen.toolCalls.map((call) => ({ ...call, count: 1 }))),
    commands: bounded(seen.commands.map((command) => ({ ...command }))),
    filesChanged: seen.files.map((file) => ({ ...file })),
    denied: groupDenied(seen.denied.map((tool) => ({ tool: clipped(tool, nameMax), count: 1 }))),
    durationMs: more.durationMs,
    usage: more.usage,
    stopReason: more.stopReason,
  };
}

export function mergeReceipts(receipts: readonly Receipt[]): Receipt {
  return {
    turns: receipts.reduce((sum, receipt) => sum + receipt.turns, 0),
    toolCalls: groupCalls(receipts.flatMap((receipt) => receipt.toolCalls)),
    commands: bounded(receipts.flatMap((receipt) => receipt.commands)),
    filesChanged: mergeFiles(receipts.flatMap((receipt) => receipt.filesChanged)),
    denied: groupDenied(receipts.flatMap((receipt) => receipt.denied)),
    durationMs: receipts.reduce((sum, receipt) => sum + receipt.durationMs, 0),
    usage: receipts.reduce<Usage>((sum, receipt) => addUsage(sum, receipt.usage), NO_USAGE),
    stopReason: receipts.at(-1)?.stopReason ?? null,
  };
}

/** Adds two usages. The sum of an unknown and a known cost is the known one: at least that much was spent. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    usd: sum(a.usd, b.usd),
    ...(a.estimated || b.estimated ? { estimated: true } : {}),
  };
}

/** "14 tool calls, 9 commands (last: npm test, exit 0), 41k tokens" */
export function receiptLine(receipt: Receipt): string {
  const calls = toolCallCount(receipt);
  const parts = [calls === 0 ? "no tool call" : count(calls, "tool call")];
  const last = receipt.commands.at(-1);
  if (last !== undefined) {
    const exit = last.exitCode === null ? "" : `, exit ${last.exitCode}`;
    parts.push(`${count(receipt.commands.length, "command")} (last: ${oneLine(last.command)}${exit})`);
  }
  const used = receipt.usage.inputTokens + receipt.usage.outputTokens;
  const about = receipt.usage.estimated ? "about " : "";
  if (used > 0) parts.push(`${about}${tokens(used)} tokens`);
  return parts.join(", ");
}

/** The sentence for a receipt without any tool call or file change. */
export function unprovenLine(durationMs: number): string {
  return `It called no tool at all in ${duration(durationMs)}; treat its report as unproven.`;
}

/** "Denied: 2 requests (git push, npm publish)."; null if nothing was denied. */
export function deniedLine(receipt: Receipt): string | null {
  const requests = receipt.denied.reduce((sum, denied) => sum + denied.count, 0);
  if (requests === 0) return null;
  const names = receipt.denied.slice(0, deniedShown).map((denied) => oneLine(denied.tool, 60));
  if (receipt.denied.length > deniedShown) names.push("…");
  return `Denied: ${count(requests, "request")} (${names.join(", ")}).`;
}

export function toolCallCount(receipt: Receipt): number {
  return receipt.toolCalls.reduce((sum, call) => sum + call.count, 0);
}

function placeOf({ places, toolCalls }: Seen, update: { callId: string; tool: string }) {
  const known = places.get(update.callId);
  if (known !== undefined) return known;
  const call = toolCalls.push({ name: clipped(update.tool, nameMax), ok: false }) - 1;
  const place = { call, command: null };
  places.set(update.callId, place);
  return place;
}

function noteCommand(
  seen: Seen,
  place: { command: number | null },
  update: { command?: string; exitCode?: number | null },
): void {
  if (place.command === null) {
    if (update.command === undefined) return;
    place.command = seen.commands.length;
    seen.commands.push({ command: "", exitCode: null });
  }
  const noted = seen.commands[place.command];
  if (noted === undefined) return;
  if (update.command !== undefined) noted.command = clipped(update.command, commandMax);
  if (update.exitCode !== undefined) noted.exitCode = update.exitCode;
}

function groupCalls(calls: Receipt["toolCalls"]): Receipt["toolCalls"] {
  const groups = new Map<string, Receipt["toolCalls"][number]>();
  for (const call of calls) {
    const known = `${call.ok} ${call.name}`;
    const name = groups.has(known) || groups.size < toolNamesMax ? call.name : otherTools;
    const key = `${call.ok} ${name}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { ...call, name });
    else group.count += call.count;
  }
  return [...groups.values()];
}

function groupDenied(denied: Receipt["denied"]): Receipt["denied"] {
  const groups = new Map<string, number>();
  for (const { tool, count: times } of denied) groups.set(tool, (groups.get(tool) ?? 0) + times);
  return [...groups].map(([tool, times]) => ({ tool, count: times }));
}

/** Merges the changes of each file into one; a file that was added and then removed has no change. */
function mergeFiles(changes: readonly FileChange[]): FileChange[] {
  const files = new Map<string, FileChange>();
  for (const file of changes) {
    const known = files.get(file.path);
    if (known?.status === "added" && file.status === "removed") files.delete(file.path);
    else if (known === undefined) files.set(file.path, file);
    else files.set(file.path, mergeFile(known, file));
  }
  return [...files.values()];
}

function mergeFile(known: FileChange, next: FileChange): FileChange {
  const stays = known.status === "added" && next.status !== "removed";
  const returns = known.status === "removed" && next.status === "added";
  return {
    path: known.path,
    status: stays ? "added" : returns ? "changed" : next.status,
    added: sum(known.added, next.added),
    removed: sum(known.removed, next.removed),
  };
}

function sum(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}

/** Keeps only the first commands and the last one, so that the receipt's row in the store stays small. */
function bounded<T>(commands: T[]): T[] {
  return commands.length <= commandsMax
    ? commands
    : [...commands.slice(0, commandsMax - 1), ...commands.slice(-1)];
}

function clipped(text: string, max: number): string {
  return shortLine(visible(redact(text.slice(0, max * 8))), max);
}

const nameMax = 120;
const commandMax = 300;
const commandsMax = 1000;
/** An agent may invent a new tool name for every call. The limit keeps the receipt's row small. */
const toolNamesMax = 200;
const otherTools = "other tools";
const deniedShown = 5;
