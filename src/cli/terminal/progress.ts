import type { Session, WaitOutput } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import type { Client } from "../daemon/connection.ts";
import { familyLines } from "../show/family.ts";
import { followSessions } from "./live.ts";
import { paintFor } from "./paint.ts";
import { inlineBlock } from "./screen.ts";
import { labelOf } from "../sessions.ts";

export interface WaitRequest {
  readonly session: Session;
  readonly timeoutMs: number | undefined;
  readonly until: "completion" | "turn";
}

/** Waits for the end of a round, even across restarts of the daemon, and draws the family on a terminal. */
export async function waitWithProgress(
  client: Client,
  call: Call,
  request: WaitRequest,
): Promise<WaitOutput> {
  const done = new AbortController();
  const leave = () => {
    const label = labelOf(request.session);
    call.io.note(
      `\n"${label}" goes on in the background. Wait again: kinfold wait '${label}'   Stop it: kinfold cancel '${label}'`,
    );
    process.exit(130);
  };
  process.once("SIGINT", leave);
  const drawing = drawUntil(client, call, { session: request.session, signal: done.signal });
  try {
    return await client.waitFor(request.session.id, {
      until: request.until,
      ...(request.timeoutMs === undefined ? {} : { timeoutMs: request.timeoutMs }),
    });
  } finally {
    done.abort();
    process.off("SIGINT", leave);
    await drawing;
  }
}

/** Draws on standard error, and erases the drawing at the end. If drawing fails, the wait still goes on. */
async function drawUntil(
  client: Client,
  call: Call,
  what: { session: Session; signal: AbortSignal },
): Promise<void> {
  if (!process.stderr.isTTY || call.io.json) return;
  const block = inlineBlock(process.stderr);
  const paint = paintFor(process.stderr, call.env);
  let sessions: readonly Session[] = [what.session];
  let asks: ReadonlyMap<string, string> = new Map();
  let isOffline = false;
  const draw = () => {
    const below = sessions.filter(
      (session) => session.id === what.session.id || isBelow(session, what.session, sessions),
    );
    const columns = process.stderr.columns ?? 80;
    const lines = familyLines(below, { columns, paint, now: Date.now(), asks });
    block.draw(isOffline ? [...lines, paint("soft", "The daemon does not answer; waiting for it.")] : lines);
  };
  draw();
  const ticking = setInterval(draw, 1000);
  try {
    await followSessions(client, {
      tree: what.session.rootId,
      signal: what.signal,
      onChange: (view) => {
        if (view.sessions.length > 0) sessions = view.sessions;
        asks = view.asks;
        isOffline = view.offlineSince !== null;
        draw();
      },
    });
  } catch (error) {
    if (!what.signal.aborted)
      call.io.note(`Progress cannot be shown: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    clearInterval(ticking);
    block.draw([]);
    block.end();
  }
}

function isBelow(session: Session, top: Session, sessions: readonly Session[]): boolean {
  let parent = session.parentId;
  while (parent !== null) {
    if (parent === top.id) return true;
    parent = sessions.find((other) => other.id === parent)?.parentId ?? null;
  }
  return false;
}
