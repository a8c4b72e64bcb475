import { Refusal, type WaitOutput } from "../../contract/index.ts";
import { shortId } from "../../contract/short-id.ts";
import type { Call } from "../call.ts";
import type { Client } from "../daemon/connection.ts";
import { EXITS, type ExitName } from "../failure.ts";
import { clip, harmless, cleanLine } from "../terminal/text.ts";
import { duration } from "../../text/quantity.ts";

/** Prints the result to standard output, the rest to standard error. Returns the exit code. */
export async function sayEnd(client: Client, call: Call, end: WaitOutput): Promise<number> {
  const exit = EXITS[exitNameOf(end)][0];
  if (call.io.json) {
    call.io.answer({ ...end, exit });
    return exit;
  }
  const id = shortId(end.sessionId);
  const label = end.name === null ? id : cleanLine(end.name);
  if (end.result) call.io.line(harmless(end.result));
  if (end.lastWords !== null)
    call.io.note(`Its last words after this: ${clip(cleanLine(end.lastWords), 400)}`);
  if (isUnknown(end)) {
    call.io.note(
      `"${label}" is not at work, and its files do not say how it ended. Look at it: kinfold show ${id}`,
    );
    return exit;
  }
  if (end.timedOut || end.outcome === null) {
    call.io.note(
      `"${label}" is still at work and goes on. Wait again: kinfold wait ${id}   Stop it: kinfold cancel ${id}`,
    );
    return exit;
  }
  await markSeen(client, end.sessionId);
  if (end.outcome !== "completed") call.io.note(`"${label}" ${sentence(end)}`);
  else if (!end.result) call.io.note(`"${label}" completed without saying anything.`);
  return exit;
}

/** Ignores a refusal: an agent's token may not mark sessions as seen, and nothing depends on it. */
export async function markSeen(client: Client, id: string): Promise<void> {
  try {
    await client.update({ id, seen: true });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

function sentence(end: WaitOutput): string {
  const word = end.outcome === "failed" ? "failed" : `was ${end.outcome}`;
  const took = end.receipt === null ? "" : ` after ${duration(end.receipt.durationMs)}`;
  return `${word}${took}${end.error ? `: ${cleanLine(end.error)}` : "."}`;
}

/** True if it is unknown how the session ended. Agents not started by Kinfold do not always record it. */
function isUnknown({ timedOut, outcome, status }: WaitOutput): boolean {
  return !timedOut && outcome === null && status !== "working";
}

function exitNameOf(end: WaitOutput): ExitName {
  if (isUnknown(end)) return "interrupted";
  if (end.timedOut || end.outcome === null) return "outOfTime";
  return end.outcome === "completed" ? "done" : end.outcome;
}
