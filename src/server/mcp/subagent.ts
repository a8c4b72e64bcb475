import type { SubagentOutput } from "../../contract/index.ts";
import { shortId } from "../../contract/short-id.ts";
import { oneLine } from "../../text/fence.ts";
import { fitBlock, reply, shareOf } from "./reply.ts";
import { answerCalls } from "./wait.ts";

type Result = SubagentOutput["results"][number];

type Options = { readonly unread: number; readonly isWakeable: boolean };

/** Lists the results in the order of the tasks. If a task is still working, says what to do next. */
export function subagentReply(output: SubagentOutput, options: Options): string {
  const { results, needsYou, cursor } = output;
  const head = {
    results: results.map(({ shortId: id, outcome }) => ({ session_id: id, outcome })),
    needs_you: needsYou.map((item) => shortId(item.sessionId)),
    over: output.isOver,
    cursor,
    unread: options.unread,
  };
  const share = shareOf(results.length + needsYou.length);
  return reply(
    head,
    ...results.map((result, index) => block(result, index, share)),
    ...needsYou.map((item) => `${fitBlock(item.what, share, `get_session("${shortId(item.sessionId)}")`)}\n`),
    nextLine(output, options),
  );
}

function block(result: Result, index: number, share: number): string {
  const lead = `${index + 1}. "${oneLine(result.task, 80)}"`;
  const who = result.shortId === null ? "" : ` (${result.shortId})`;
  switch (result.outcome) {
    case "working":
      return `${lead}${who}: working, ${oneLine(result.text, 120)}\n`;
    case "refused":
    case "not_started":
      return `${lead}: ${result.outcome === "refused" ? "REFUSED" : "not started"}: ${oneLine(result.text, 400)}\n`;
    default:
      return `${lead}${who}:\n${fitBlock(result.text, share, `get_session("${result.shortId}")`)}\n`;
  }
}

function nextLine(output: SubagentOutput, { isWakeable }: Options): string {
  const isTold = output.results.some(
    ({ outcome }) => !["working", "refused", "not_started"].includes(outcome),
  );
  const once = isTold ? "These results will not be sent to you again." : "";
  if (output.isOver) return once;
  const again = `wait_session with cursor "${output.cursor}"`;
  const asked = answerCalls(output.needsYou);
  if (asked !== "") {
    const rest = isWakeable
      ? `The rest comes to you as messages; only if you cannot go on without it: ${again}.`
      : `Before you end your turn: ${again}.`;
    return `Next: ${asked}. ${rest} ${once}`.trim();
  }
  const next = isWakeable
    ? `Still working; the rest comes to you as messages: go on or end your turn. Only if you cannot: ${again}.`
    : `Still working. Go on with other work; before you end your turn: ${again}.`;
  return `${next} ${once}`.trim();
}
