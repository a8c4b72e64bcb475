import type { Session } from "../../src/contract/index.ts";
import type { Client } from "./daemon.ts";
import { eventually } from "./daemon.ts";
import { replyOf, type ToolReply } from "./spy.ts";

type Tree = Awaited<ReturnType<Client["tree"]>>["sessions"];

/** Resolves to the whole tree once every round in it is closed. */
export async function allQuiet(client: Client, id: string, timeoutMs = 60_000): Promise<Tree> {
  return eventually(
    `everyone in the family of ${id} is quiet`,
    async () => {
      const { sessions } = await client.tree({ id });
      const isQuiet = sessions.every((each) => each.status === "idle" || each.status === "ended");
      return isQuiet ? sessions : null;
    },
    timeoutMs,
  );
}

/** Returns the callbacks in a session's transcript, in order, with the index and text of each. */
export async function callbacksTo(client: Client, id: string): Promise<{ index: number; text: string }[]> {
  const { entries } = await client.entries({ id, limit: 1000 });
  return entries
    .filter((entry) => entry.kind === "callback")
    .map((entry) => ({ index: entry.index, text: entry.body.text }));
}

/**
 * Checks the invariants that hold after every run. A child with an outcome has a callback in its parent's
 * inbox, unless its callback is off or it was detached. No callback exists twice or was delivered twice. No
 * callback has the status `taken` in a session that is not running.
 */
export async function checkInvariants(client: Client, rootId: string): Promise<void> {
  const { sessions } = await client.tree({ id: rootId });
  for (const session of sessions) {
    const { messages } = await client.inbox({ id: session.id, all: true });
    const callbacks = messages.filter((message) => message.kind === "callback");
    const keys = callbacks.map((message) => message.metadata["triggerId"]);
    if (new Set(keys).size !== keys.length) throw new Error(`a callback is duplicated in ${session.id}`);
    const { entries } = await client.entries({ id: session.id, limit: 1000 });
    for (const message of callbacks) {
      const carried = entries.filter((entry) => entry.body.messageId === message.id).length;
      if (carried > 1) throw new Error(`a callback was delivered ${carried} times at ${session.id}`);
      if (message.status === "taken" && session.status !== "running") {
        throw new Error(`a callback stays taken at ${session.id}`);
      }
    }
    for (const child of sessions.filter((each) => each.parentId === session.id)) {
      const own = callbacks.filter((message) => message.metadata["childSessionId"] === child.id);
      const isOwed = child.callback.enabled && child.detachedAt === null && child.outcome !== null;
      if (isOwed && own.length === 0) throw new Error(`no callback for ${child.id} at ${session.id}`);
    }
  }
}

/** Returns the replies of one of our tools to a session, in order. */
export async function toolReplies(client: Client, id: string, tool: string): Promise<ToolReply[]> {
  const { entries } = await client.entries({ id, limit: 1000 });
  return entries
    .filter((entry) => entry.kind === "toolResult" && entry.body.tool?.endsWith(tool))
    .map((entry) => replyOf(entry.body.text, entry.body.ok === false));
}

export async function quiet(client: Client, id: string): Promise<Session> {
  return eventually(`${id} is quiet`, async () => {
    const { session } = await client.get({ id });
    return session.status === "idle" || session.status === "ended" ? session : null;
  });
}

export async function running(client: Client, id: string): Promise<Session> {
  return eventually(`${id} is in a turn`, async () => {
    const { session } = await client.get({ id });
    return session.status === "running" ? session : null;
  });
}

export async function childNamed(client: Client, parentId: string, name: string): Promise<Session> {
  return eventually(`${parentId} has a child ${name}`, async () => {
    const { sessions } = await client.children({ id: parentId });
    return sessions.find((each) => each.name === name) ?? null;
  });
}
