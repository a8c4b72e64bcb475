import {
  byteLength,
  bytes as byteWords,
  duration,
  shownPart,
  tokens as tokenWords,
} from "../../text/quantity.ts";
import { shortId } from "../../contract/short-id.ts";
import type { CancelOutput, Refusal, SpawnOutput, TellOutput } from "../../contract/index.ts";
import { fence, firstBytes, folded, oneLine, visible } from "../../text/fence.ts";
import { randomBytes } from "node:crypto";

/** The size limit of a whole reply: every client shows at least this much uncut. */
export const REPLY_BYTES_MAX = 24 * 1024;

/** Line 1 is a JSON object with only the daemon's words and ids. What people or agents wrote comes below. */
export function reply(head: object, ...lines: readonly string[]): string {
  const text = [JSON.stringify(head), ...lines.filter((line) => line !== "")].join("\n");
  return shorten(text, REPLY_BYTES_MAX, "\n[cut]");
}

export function refusalLine(refusal: Refusal): string {
  const line = shorten(`${refusal.code}: ${folded(visible(refusal.message))}`, 4_096, " […]");
  // A refusal may report the end of a child. Like a result, it then carries the delivery id on a separate
  // line.
  const { deliveryId } = refusal.details;
  return typeof deliveryId === "string" ? `${line}\n<!-- trigger:${deliveryId} -->` : line;
}

/** `isWakeable` is false for a client that cannot be woken from outside. */
export function spawnReply(
  output: SpawnOutput,
  options: { unread: number; now: number; isWakeable: boolean },
): string {
  const { session } = output;
  const head = {
    session_id: session.shortId,
    name: session.name,
    status: output.status,
    ...(output.existing && { existing: true }),
    unread: options.unread,
  };
  if (output.existing) return reply(head, existingLine(output, options.now));
  const places = `${output.childrenOpen} of ${output.childrenMax} children at work.`;
  return reply(
    head,
    `${output.status === "queued" ? "Accepted" : "Started"} ${appliedTo(output)}. ${places}`,
    output.status === "queued" ? queuedLine(output) : "",
    session.url === "" ? "" : `Its page: ${session.url}`,
    options.isWakeable
      ? "The result will come to you as a message. Go on with other work, or end your turn if there is none. Do not poll; do not spawn this again."
      : "Your client cannot be woken from outside. Go on with other work; call wait_session before you end your turn. Do not spawn this again.",
  );
}

/** Describes what was applied, which may be less than what was asked for. */
function appliedTo({ effective, metering, inherited }: SpawnOutput): string {
  const { agent, model, profile, cwd, permission, tools, inherit, node } = effective;
  const who = [agent, model].filter((word) => word !== null).join(" ");
  const as = profile === "default" ? "" : ` as ${profile}`;
  const where =
    effective.workspace === "clone"
      ? `in its own clone of ${cwd} (your uncommitted changes included)`
      : `in ${cwd} (shared)`;
  const limits = limitWords(effective.limits, metering);
  return [
    `${who}${as} ${where}`,
    `permission ${permission}${effective.loweredBy?.["permission"] === undefined ? "" : " (its project allows no more)"}`,
    ...(tools === null ? [] : [`tools ${tools.length === 0 ? "none" : oneLine(tools.join(", "), 400)}`]),
    `inherits ${inheritWords(inherit, inherited)}`,
    ...(limits === "" ? [] : [`limits ${limits}`]),
    ...(node === "local" ? [] : [`node ${node}`]),
  ].join("; ");
}

/** Describes the limits. A budget is only as exact as the agent's own usage reports. */
function limitWords(limits: Readonly<Record<string, number>>, metering: SpawnOutput["metering"]): string {
  const { minutes, usd, tokens, turns } = limits;
  const over = metering === "call" ? "one model call" : "one turn";
  const words = [
    minutes === undefined ? null : `${minutes} min`,
    usd === undefined ? null : `$${usd}`,
    tokens === undefined ? null : `${tokenWords(tokens)} tokens`,
    turns === undefined ? null : `${turns} ${turns === 1 ? "turn" : "turns"}`,
  ].filter((word) => word !== null);
  const isBudget = usd !== undefined || tokens !== undefined;
  return words.join(", ") + (isBudget ? ` (kept to within ${over})` : "");
}

export function cancelReply(output: CancelOutput, unread: number, isTurnOnly: boolean): string {
  const left = output.left.map((item) => ({ session_id: shortId(item.sessionId), pid: item.pid }));
  const head = { cancelled: output.cancelled, stopped: output.stopped, left, unread };
  const who = quoted(output.name, output.sessionId);
  // This reply replaces the callback. The callback's id in the agent's transcript proves that the reply
  // arrived.
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
  const below = output.stopped - (output.cancelled ? 1 : 0);
  const more = below > 0 ? `${below} ${below === 1 ? "session" : "sessions"} below it` : "";
  const stopped = output.cancelled
    ? `Stopped ${who}${more === "" ? "" : ` and ${more}`}${closedWords(output)}`
    : `${who} was not at work; it has ended now and takes no more messages${more === "" ? "" : `. Stopped ${more}`}`;
  // A session that finished before the cancel still sends its result, so this sentence would be wrong for it.
  const after = output.cancelled ? " You will get no further message about it." : "";
  return reply(head, mark, `${stopped}; ${remainder(output)}${after}`);
}

function closedWords({ closed }: CancelOutput): string {
  if (closed === 0) return "";
  return `, and closed ${closed} finished ${closed === 1 ? "session" : "sessions"} below it`;
}

export function tellReply(output: TellOutput, unread: number): string {
  const head = { delivered: output.delivered, ...(output.existing && { existing: true }), unread };
  return reply(head, oneLine(output.why, 400));
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
  const limit = ` (${output.turnsMax} turns run on this machine)`;
  const others = output.queuedBehind === 1 ? "1 other" : `${output.queuedBehind} others`;
  return output.queuedBehind > 0
    ? `Queued behind ${others}${limit}; it starts by itself.`
    : `Queued until a turn is free${limit}; it starts by itself.`;
}

/** Describes the inherited context (`a 2.1 KB brief`), or why the child inherited nothing. */
function inheritWords(inherit: string, { bytes, why }: SpawnOutput["inherited"]): string {
  if (inherit === "none") return why === null ? "nothing" : `nothing: ${why}`;
  const size = byteWords(bytes);
  if (inherit !== "fork") return `a ${size} ${inherit}`;
  return bytes === 0
    ? "a fork of your conversation"
    : `a fork of your conversation and ${size} of constraints`;
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

/** Puts another session's text between tags with this id. A note below says if the text was cut. */
export function fenced(text: string, id: string, bytesMax: number): string {
  const { text: block, cut, bytes } = fence(text, id, bytesMax);
  return cut ? `${block}\n[${shownPart(bytesMax, bytes)}]` : block;
}

/** Returns a random id for quoted text that is not a message and so has no id. */
export function newNonce(): string {
  return randomBytes(4).toString("hex");
}

export function quoted(name: string | null, sessionId: string): string {
  return name === null ? shortId(sessionId) : `"${name}" (${shortId(sessionId)})`;
}

/** Cuts at a character boundary so that text and mark fit into `bytesMax`. */
export function shorten(text: string, bytesMax: number, mark: string): string {
  if (byteLength(text) <= bytesMax) return text;
  return firstBytes(text, bytesMax - byteLength(mark)) + mark;
}

/** Cuts a child's report but keeps its closing tag. Without it, later text would seem part of the report. */
export function fitBlock(block: string, bytesMax: number, rest: string): string {
  const bytes = byteLength(block);
  if (bytes <= bytesMax) return block;
  const fenceAt = block.lastIndexOf("\n</child-output id=");
  if (fenceAt === -1) return shorten(block, bytesMax, " [cut]");
  const close = block.slice(fenceAt).split("\n").slice(0, 2).join("\n");
  const mark = `${close}\n[${shownPart(bytesMax, bytes)}; the rest: ${rest}]`;
  return shorten(block.slice(0, fenceAt), bytesMax, mark);
}

/** Returns how many bytes each of `count` results may take in one reply. */
export function shareOf(count: number): number {
  return Math.min(RESULT_BYTES_MAX, Math.floor(RESULTS_BYTES_MAX / Math.max(1, count)));
}

/** The limit for all results of one reply. The rest of the reply is for line 1, names and the next step. */
const RESULTS_BYTES_MAX = 20 * 1024;
const RESULT_BYTES_MAX = 4 * 1024;
