import type { Session } from "../../contract/index.ts";
import { askLine, needKind, type OpenTrigger } from "./asking.ts";
import type { Client } from "../daemon/connection.ts";
import { Failure, refused } from "../failure.ts";
import { findSession, labelOf } from "../sessions.ts";

export type Action = "approve" | "edit" | "cancel" | "allow" | "deny" | "followUp" | "ack";

export interface Asked {
  readonly trigger: Omit<OpenTrigger, "sessionName">;
  readonly session: Session;
}

/** Finds an open trigger by its id or session. For `followUp` and `ack`, finds that of a finished round. */
export async function findAsked(client: Client, ref: string, action: Action | null): Promise<Asked> {
  const { triggers } = await client.listTriggers({ for: "all" });
  const byId = triggers.filter((each) => each.id === ref || each.shortId === ref);
  const named = byId.length === 1 ? byId : triggers.filter((each) => each.sessionName === ref);
  if (named.length === 1 && !isAboutEnd(action)) return withSession(client, named[0]!);
  const session = await sessionOf(client, ref);
  if (isAboutEnd(action)) return { trigger: await endOf(client, session), session };
  const own = triggers.filter((each) => each.sessionId === session.id || each.sessionName === ref);
  const fitting = action === null ? own : own.filter((each) => each.actions.includes(action));
  const [first, ...more] = fitting.length > 0 ? fitting : own;
  if (first === undefined) throw asksNothing(session);
  if (more.length > 0) throw several(ref, [first, ...more]);
  return withSession(client, first);
}

async function withSession(client: Client, trigger: OpenTrigger): Promise<Asked> {
  return { trigger, session: (await client.get({ id: trigger.sessionId })).session };
}

async function sessionOf(client: Client, ref: string): Promise<Session> {
  try {
    return await findSession(client, ref);
  } catch (error) {
    const isUnknown = error instanceof Failure && error.code === "not_found";
    if (!isUnknown || !/^[0-9a-f-]{8,36}$/.test(ref)) throw error;
    throw refused("unknown_trigger", `Nothing that waits for an answer has the id ${ref}.`, [
      "It may already be answered or withdrawn. What needs you: kinfold inbox",
    ]);
  }
}

/** Returns the trigger of the session's last finished round; a person can answer it with more work. */
async function endOf(client: Client, session: Session): Promise<Asked["trigger"]> {
  const { triggers } = await client.triggers({ id: session.id });
  const end = triggers.findLast((each) => each.type === "session_complete" && each.status === "open");
  if (end !== undefined) return end;
  const label = labelOf(session);
  throw refused("unknown_trigger", `${label} has no finished round to answer.`, [
    `Give it more work: kinfold tell '${label}' "…"`,
    `Look at it: kinfold show '${label}'`,
  ]);
}

function asksNothing(session: Session): Failure {
  const label = labelOf(session);
  return refused("unknown_trigger", `${label} is not asking anything.`, [
    "What needs you: kinfold inbox",
    `Send it a message: kinfold tell '${label}' "…"`,
  ]);
}

function several(ref: string, triggers: readonly OpenTrigger[]): Failure {
  const lines = triggers.map(
    (each) => `kinfold answer ${each.shortId}   (${needKind(each).toLowerCase()}: ${askLine(each)})`,
  );
  return refused("ambiguous_reference", `${ref} asks ${triggers.length} things. Choose one:`, lines);
}

function isAboutEnd(action: Action | null): boolean {
  return action === "followUp" || action === "ack";
}
