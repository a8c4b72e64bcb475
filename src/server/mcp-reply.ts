import { shortId } from "../contract/index.ts";
import type { CancelOutput, OutputOf, Refusal, SpawnOutput, TellOutput } from "../contract/index.ts";
import { duration, oneLine, quoted, shorten } from "./mcp-words.ts";
import { familyLines } from "./mcp-family.ts";

/** The whole of a reply: every client shows at least this much uncut. */
export const REPLY_BYTES_MAX = 24 * 1024;

/** Line 1 of a reply is one JSON object of our own words and ids; what people or agents wrote comes below. */
export function reply(head: object, ...lines: readonly string[]): string {
  const text = [JSON.stringify(head), ...lines.filter((line) => line !== "")].join("\n");
  return shorten(text, REPLY_BYTES_MAX, "\n[cut]");
}

export function refusalLine(refusal: Refusal): string {
  const line = shorten(`${refusal.code}: ${refusal.message.replaceAll(/\s+/g, " ")}`, 4_096, " […]");
  // A refusal that tells a child's end carries its delivery id, on a line of its own, as a result does.
  const { deliveryId } = refusal.details;
  return typeof deliveryId === "string" ? `${line}\n<!-- trigger:${deliveryId} -->` : line;
}

export function spawnReply(output: SpawnOutput, unread: number, now: number): string {
  const { session, effective } = output;
  const head = {
    session_id: session.shortId,
    name: session.name,
    status: output.status,
    ...(output.existing && { existing: true }),
    unread,
  };
  if (output.existing) return reply(head, existingLine(output, now));
  const who = [effective.agent, effective.model].filter((word) => word !== null).join(" ");
  const how = `${who} in ${effective.cwd} (${effective.workspace}); permission ${effective.permission}; inherits ${inherited(effective.inherit)}.`;
  const places = `${output.childrenOpen} of ${output.childrenMax} children at work.`;
  return reply(
    head,
    `${output.status === "queued" ? "Accepted" : "Started"} ${how} ${places}`,
    output.status === "queued" ? queuedLine(output) : "",
    "The result will come to you as a message. Go on with other work, or end your turn if there is none. Do not poll; do not spawn this again.",
  );
}

export function cancelReply(output: CancelOutput, unread: number, isTurnOnly: boolean): string {
  const left = output.left.map((item) => ({ session_id: shortId(item.sessionId), pid: item.pid }));
  const head = { cancelled: output.cancelled, stopped: output.stopped, left, unread };
  const who = quoted(output.name, output.sessionId);
  // The callback that this reply stands for has landed once its id was seen in it.
  const mark = output.deliveryId === null ? "" : `<!-- trigger:${output.deliveryId} -->`;
  if (isTurnOnly) {
    return reply(
      head,
      mark,
      output.cancelled
        ? `Stopped the running turn of ${who}; the session stays and takes more work through tell_child.`
        : `${who} had no running turn; nothing was stopped.`,
    );
  }
  const below = output.stopped - 1;
  const more = below > 0 ? ` and ${below} ${below === 1 ? "session" : "sessions"} below it` : "";
  const stopped = output.cancelled
    ? `Stopped ${who}${more}`
    : `${who}${more} was not at work; it has ended now`;
  // Where it had finished first, its result is still told.
  const after = output.cancelled ? " You will get no further message about it." : "";
  return reply(head, mark, `${stopped}; ${remainder(output)}${after}`);
}

export function tellReply(output: TellOutput, unread: number): string {
  const head = { delivered: output.delivered, ...(output.existing && { existing: true }), unread };
  return reply(head, oneLine(output.why, 400));
}

export function familyReply(output: OutputOf<"family">, now: number): string {
  const head = { you: shortId(output.you), open: output.open, unread: output.unread };
  return reply(head, ...familyLines(output.sessions, output.you, now));
}

function existingLine({ session }: SpawnOutput, now: number): string {
  const who = session.name === null ? session.shortId : `"${session.name}"`;
  const isOpen = session.status === "running" || session.status === "waiting";
  const since = isOpen
    ? `has been at work for ${duration(now - session.createdAt)} on this task`
    : `was given this task ${duration(now - session.createdAt)} ago and has finished it`;
  const next =
    session.name === null ? "To give it more work use tell_child." : "For another one choose another name.";
  return `No second child was started: ${who} ${since}. ${next}`;
}

function queuedLine(output: SpawnOutput): string {
  const turnsMax = output.effective.limits.turnsMax;
  const limit = turnsMax === undefined ? "" : ` (${turnsMax} turns run on this machine)`;
  const others = output.queuedBehind === 1 ? "1 other" : `${output.queuedBehind} others`;
  return output.queuedBehind > 0
    ? `Queued behind ${others}${limit}; it starts by itself.`
    : `Queued until a turn is free${limit}; it starts by itself.`;
}

function inherited(inherit: string): string {
  return inherit === "none" ? "nothing" : `a ${inherit}`;
}

function remainder(output: CancelOutput): string {
  const parts: string[] = [];
  if (output.stopping.length > 0) {
    parts.push(`still stopping: ${output.stopping.map((id) => shortId(id)).join(", ")}.`);
  }
  for (const item of output.left.slice(0, 8)) {
    const pid = item.pid === null ? "" : `pid ${item.pid} `;
    parts.push(`could not be stopped: ${pid}(${oneLine(item.what, 120)}); the user is told.`);
  }
  return parts.length === 0 ? "no process is left." : parts.join(" ");
}
