import type { Receipt } from "../../contract/index.ts";
import { cleanLine, usd } from "../terminal/text.ts";
import { count, duration, tokens } from "../../text/quantity.ts";

/** Lists what the daemon saw, one fact per line. */
export function receiptLines(receipt: Receipt): string[] {
  const lines = [headline(receipt)];
  const last = receipt.commands.at(-1);
  if (last !== undefined) {
    const exit = last.exitCode === null ? "no exit code seen" : `exit ${last.exitCode}`;
    lines.push(`${count(receipt.commands.length, "command")}, last: ${cleanLine(last.command)} (${exit})`);
  }
  const calls = receipt.toolCalls.map(
    ({ name, ok, count: times }) => `${cleanLine(name)}${ok ? "" : " (failed)"}${timesWords(times)}`,
  );
  if (calls.length > 0) lines.push(calls.join(", "));
  for (const file of receipt.filesChanged.slice(0, FILES_MAX)) {
    const lineCount =
      file.added === null && file.removed === null ? "" : `  +${file.added ?? 0} −${file.removed ?? 0}`;
    lines.push(`${file.status} ${cleanLine(file.path)}${lineCount}`);
  }
  if (receipt.filesChanged.length > FILES_MAX)
    lines.push(`… ${receipt.filesChanged.length - FILES_MAX} more files`);
  const denied = receipt.denied.map(({ tool, count: times }) => cleanLine(tool) + timesWords(times));
  if (denied.length > 0) lines.push(`denied: ${denied.join(", ")}`);
  return lines;
}

function timesWords(times: number): string {
  return times > 1 ? ` ×${times}` : "";
}

function headline(receipt: Receipt): string {
  const calls = receipt.toolCalls.reduce((sum, call) => sum + call.count, 0);
  const used = receipt.usage.inputTokens + receipt.usage.outputTokens;
  const facts = [
    count(receipt.turns, "turn"),
    duration(receipt.durationMs),
    calls === 0 ? "no tool calls" : count(calls, "tool call"),
  ];
  if (used > 0) facts.push(`${tokens(used)} tokens`);
  if (receipt.usage.usd) facts.push(usd(receipt.usage.usd));
  if (receipt.stopReason !== null && receipt.stopReason !== "end_turn")
    facts.push(`stopped: ${cleanLine(receipt.stopReason)}`);
  return facts.join(", ");
}

const FILES_MAX = 12;
